// Lists the functions that a query may call. Every function of DuckDB is either here or among the refused ones, and a
// test compares both lists with DuckDB's own.

function names(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

/** The functions that a query may use as a table. They produce their rows as they are read. */
export const tableFunctions: ReadonlySet<string> = new Set(
  names('generate_series json_each json_tree range unnest'),
);

const operators = names(`
  !__postfix !~~ !~~* % & && * ** + - ->> / // <-> << <=> <@ >> @ @> ^ ^@ | || ~ ~~ ~~* ~~~
  add divide mod multiply subtract xor
  like_escape ilike_escape not_like_escape not_ilike_escape
`);

const numeric = names(`
  abs acos acosh asin asinh atan atan2 atanh bin bit_count cbrt ceil ceiling cos cosh cot degrees even exp factorial
  fdiv floor fmod format_bytes formatReadableDecimalSize formatReadableSize gamma gcd greatest greatest_common_divisor
  hex isfinite isinf isnan lcm least least_common_multiple lgamma ln log log10 log2 nextafter pi pow power radians
  random round round_even roundbankers sign signbit sin sinh sqrt tan tanh trunc unbin
`);

const text = names(`
  ascii base64 bit_length char_length character_length chr concat concat_ws contains damerau_levenshtein decode
  editdist3 encode ends_with from_base64 from_binary from_hex hamming hash instr jaccard jaro_similarity
  jaro_winkler_similarity lcase left left_grapheme len length length_grapheme levenshtein lower ltrim md5 md5_number
  md5_number_lower md5_number_upper mismatches nfc_normalize octet_length ord parse_dirname parse_dirpath
  parse_filename parse_formatted_bytes parse_path position prefix regexp_escape regexp_extract regexp_extract_all
  regexp_full_match regexp_matches regexp_replace regexp_split_to_array regexp_split_to_table replace reverse right
  right_grapheme rtrim sha1 sha256 split split_part starts_with str_split str_split_regex string_split
  string_split_regex string_to_array strip_accents strlen strpos substr substring substring_grapheme suffix to_base64
  to_binary to_hex translate trim ucase unhex unicode upper url_decode url_encode
`);

const datesAndTimes = names(`
  age ago century current_date current_localtime current_localtimestamp date_add date_diff date_part date_sub
  date_trunc datediff datepart datesub datetrunc day dayname dayofmonth dayofweek dayofyear days_in_month decade epoch
  epoch_ms epoch_ns epoch_us era get_current_time get_current_timestamp hour isodow isoyear julian last_day make_date
  make_time make_timestamp make_timestamp_ms make_timestamp_ns make_timestamptz microsecond millennium millisecond
  minute month monthname nanosecond normalized_interval now quarter second strftime strptime time_bucket timezone
  timezone_hour timezone_minute to_centuries to_days to_decades to_hours to_microseconds to_millennia to_milliseconds
  to_minutes to_months to_quarters to_seconds to_timestamp to_weeks to_years today transaction_timestamp try_strptime
  week weekday weekofyear year yearweek
`);

const identifiers = names(`
  gen_random_uuid uuid uuid_extract_timestamp uuid_extract_version uuidv4 uuidv7
`);

const lists = names(`
  aggregate apply array_aggr array_aggregate array_append array_apply array_cat array_concat array_contains
  array_cosine_distance array_cosine_similarity array_cross_product array_distance array_distinct array_dot_product
  array_extract array_filter array_grade_up array_has array_has_all array_has_any array_indexof array_inner_product
  array_intersect array_length array_negative_dot_product array_negative_inner_product array_pop_back array_pop_front
  array_position array_prepend array_push_back array_push_front array_reduce array_reverse array_reverse_sort
  array_select array_slice array_sort array_to_string array_to_string_comma_default array_transform array_unique
  array_value array_where array_zip element_at filter flatten generate_subscripts grade_up list_aggr list_aggregate
  list_any_value list_append list_apply list_approx_count_distinct list_avg list_bit_and list_bit_or list_bit_xor
  list_bool_and list_bool_or list_cat list_concat list_contains list_cosine_distance list_cosine_similarity list_count
  list_distance list_distinct list_dot_product list_element list_entropy list_extract list_filter list_first
  list_grade_up list_has list_has_all list_has_any list_histogram list_indexof list_inner_product list_intersect
  list_kurtosis list_kurtosis_pop list_last list_mad list_max list_median list_min list_mode
  list_negative_dot_product list_negative_inner_product list_pack list_position list_prepend list_product list_reduce
  list_reverse list_reverse_sort list_select list_sem list_skewness list_slice list_sort list_stddev_pop
  list_stddev_samp list_string_agg list_sum list_transform list_unique list_value list_var_pop list_var_samp list_where
  list_zip reduce
`);

const structsAndMaps = names(`
  cardinality map map_concat map_contains map_contains_entry map_contains_value map_entries map_extract
  map_extract_value map_from_entries map_keys map_values row struct_concat struct_contains struct_extract
  struct_extract_at struct_has struct_indexof struct_insert struct_keys struct_pack struct_position struct_update
  struct_values union_extract union_tag union_value unpivot_list
`);

const json = names(`
  array_to_json from_json from_json_strict json json_array json_array_length json_contains json_exists json_extract
  json_extract_path json_extract_path_text json_extract_string json_group_array json_group_object json_group_structure
  json_keys json_merge_patch json_object json_pretty json_quote json_structure json_transform json_transform_strict
  json_type json_valid json_value row_to_json to_json
`);

const aggregates = names(`
  any_value approx_count_distinct approx_quantile approx_top_k arbitrary arg_max arg_max_null arg_max_nulls_last
  arg_min arg_min_null arg_min_nulls_last argmax argmin array_agg avg bit_and bit_or bit_xor bool_and bool_or corr
  count count_if count_star countif covar_pop covar_samp cume_dist dense_rank entropy favg fill first first_value fsum
  geomean geometric_mean group_concat histogram histogram_exact kahan_sum kurtosis kurtosis_pop lag last last_value
  lead list listagg mad max max_by mean median min min_by mode nth_value ntile percent_rank product quantile
  quantile_cont quantile_disc rank rank_dense regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx
  regr_sxy regr_syy reservoir_quantile row_number sem skewness stddev stddev_pop stddev_samp string_agg sum
  sum_no_overflow sumkahan var_pop var_samp variance wavg weighted_avg
`);

const other = names(`
  alias can_cast_implicitly cast_to_type enum_code enum_first enum_last enum_range enum_range_boundary
  is_histogram_other_bin nullif pg_typeof typeof unnest
`);

/** The functions that are allowed within limits: see `sizeProblem` in check-query.ts. */
export const sizedFunctions: ReadonlySet<string> = new Set(
  names('format generate_series lpad printf range rpad'),
);

/** The functions that a query may call in an expression. The names are in lower case, as in the syntax tree. */
export const scalarFunctions: ReadonlySet<string> = new Set(
  [
    ...operators,
    ...numeric,
    ...text,
    ...datesAndTimes,
    ...identifiers,
    ...lists,
    ...structsAndMaps,
    ...json,
    ...aggregates,
    ...other,
    ...sizedFunctions,
  ].map((name) => name.toLowerCase()),
);

/** Why functions of DuckDB are refused. A pattern matches the whole name. */
export const refusedFunctions: readonly { readonly pattern: RegExp; readonly reason: string }[] = [
  {
    pattern:
      /^(arrow_scan.*|glob|parquet_.*|read_.*|seq_scan|sniff_csv|variant_to_parquet_variant|which_secret)$/,
    reason: "A query can only read the organisation's own tables, not files or other sources.",
  },
  {
    pattern:
      /^(query|query_table|json_execute_serialized_sql|json_(de)?serialize_(sql|plan)|histogram_values)$/,
    reason: 'Name the tables in the query itself; a query cannot be built from text.',
  },
  {
    pattern:
      /^(duckdb_.*|pragma_.*|pg_(?!typeof$|sleep$).*|has_.*_privilege|inet_.*|.*obj_description|col_description|format_(pg_)?type|map_to_pg_oid|summary|sql_auto_complete|test_.*|icu_calendar_names|stats|vector_type|get_block_size|in_search_path|parse_duckdb_log_message|version|user)$/,
    reason: 'Metadata of the database cannot be read. Use DESCRIBE with the name of a table.',
  },
  {
    pattern: /^(current_(?!date$|localtime).*|session_user|getvariable|getenv|txid_current)$/,
    reason: 'Settings and details of the connection cannot be read.',
  },
  {
    pattern:
      /^(nextval|currval|setseed|write_log|.*_logging|.*_profiling|(force_)?checkpoint|truncate_duckdb_logs|.*peg_parser)$/,
    reason: 'A query can only read.',
  },
  { pattern: /^(sleep_ms|pg_sleep)$/, reason: 'A query cannot pause.' },
  {
    pattern:
      /^(repeat|repeat_row|list_resize|array_resize|bar|bitstring.*|equi_width_bins|to_base|set_bit|get_bit|bit_position)$/,
    reason: 'It can produce values that do not fit into memory.',
  },
  {
    pattern:
      /^(__internal_.*|constant_or_null|create_sort_key|combine|finalize|error|get_type|make_type|replace_type|remap_struct|icu_.*|st_.*|switch|timetz_byte_comparable|variant_.*)$/,
    reason: 'It is meant for use within DuckDB.',
  },
];
