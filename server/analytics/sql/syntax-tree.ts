// Declares the nodes of DuckDB's syntax tree (`json_serialize_sql`) that a query may consist of. A node or a field that
// is not declared here is refused, so that a new version of DuckDB cannot add something that is not checked.

export interface TreeNode {
  readonly [field: string]: unknown;
}

interface Shape {
  /** The fields that contain nodes. */
  readonly nodes: ReadonlySet<string>;
  /** The fields that contain no nodes, only names, flags and values. */
  readonly plain: ReadonlySet<string>;
}

function shape(nodes: string, plain = ''): Shape {
  return { nodes: words(nodes), plain: words(plain) };
}

function words(text: string): ReadonlySet<string> {
  return new Set(text.split(' ').filter((word) => word !== ''));
}

/** The fields that every expression and every table can have. */
const commonFields = words('class type alias query_location');

/** The expressions, by `class`. */
const expressions: Readonly<Record<string, Shape>> = {
  BETWEEN: shape('input lower upper'),
  CASE: shape('case_checks else_expr'),
  CAST: shape('child', 'cast_type try_cast'),
  COLLATE: shape('child', 'collation'),
  COLUMN_REF: shape('', 'column_names'),
  COMPARISON: shape('left right'),
  CONJUNCTION: shape('children'),
  CONSTANT: shape('', 'value'),
  FUNCTION: shape(
    'children filter order_bys',
    'function_name schema catalog distinct is_operator export_state',
  ),
  LAMBDA: shape('lhs expr'),
  OPERATOR: shape('children'),
  PARAMETER: shape('', 'identifier'),
  POSITIONAL_REFERENCE: shape('', 'index'),
  STAR: shape('replace_list expr', 'relation_name exclude_list columns qualified_exclude_list rename_list'),
  SUBQUERY: shape('subquery child', 'subquery_type comparison_type'),
  WINDOW: shape(
    'children partitions orders start_expr end_expr offset_expr default_expr filter_expr arg_orders',
    'function_name schema catalog start end ignore_nulls exclude_clause distinct',
  ),
};

/** The queries, tables and clauses, by `type`. */
const clauses: Readonly<Record<string, Shape>> = {
  SELECT_NODE: shape(
    'modifiers cte_map select_list from_table where_clause group_expressions having sample qualify',
    'group_sets aggregate_handling',
  ),
  SET_OPERATION_NODE: shape('modifiers cte_map left right', 'setop_type setop_all'),
  RECURSIVE_CTE_NODE: shape('modifiers cte_map left right key_targets', 'cte_name union_all aliases'),
  BASE_TABLE: shape('sample', 'schema_name table_name column_name_alias catalog_name at_clause'),
  EMPTY: shape('sample'),
  EXPRESSION_LIST: shape('sample values', 'expected_names expected_types'),
  JOIN: shape(
    'sample left right condition duplicate_eliminated_columns',
    'join_type ref_type using_columns delim_flipped',
  ),
  PIVOT: shape('sample source aggregates pivots', 'unpivot_names groups column_name_alias include_nulls'),
  SHOW_REF: shape('sample query', 'table_name show_type catalog_name schema_name'),
  SUBQUERY: shape('sample subquery', 'column_name_alias'),
  TABLE_FUNCTION: shape('sample function', 'column_name_alias with_ordinality'),
  DISTINCT_MODIFIER: shape('distinct_on_targets'),
  LIMIT_MODIFIER: shape('limit offset'),
  LIMIT_PERCENT_MODIFIER: shape('limit offset'),
  ORDER_MODIFIER: shape('orders'),
  ORDER_DEFAULT: shape('expression', 'null_order'),
  ASCENDING: shape('expression', 'null_order'),
  DESCENDING: shape('expression', 'null_order'),
};

/** The nodes that have neither a class nor a type, by the field that contains them. */
const parts: Readonly<Record<string, Shape>> = {
  statements: shape('node', 'named_param_map'),
  subquery: shape('node', 'named_param_map'),
  query: shape('node', 'named_param_map'),
  cte_map: shape('map'),
  map: shape('value', 'key'),
  value: shape('query key_targets', 'aliases materialized'),
  case_checks: shape('when_expr then_expr'),
  replace_list: shape('value', 'key'),
  pivots: shape('pivot_expressions entries', 'unpivot_names pivot_enum'),
  entries: shape('star_expr', 'values'),
  sample: shape('', 'sample_size is_percentage method seed'),
};

/** A node's declaration. */
export interface Declared {
  /** For example `expression FUNCTION` or `clause BASE_TABLE`. */
  readonly kind: string;
  readonly shape: Shape;
}

/** Returns a node's declaration, or null if the node, which is in the given field, is not declared. */
export function declarationOf(node: TreeNode, field: string): Declared | null {
  const [group, name, shapes] =
    typeof node.class === 'string'
      ? ['expression', node.class, expressions]
      : typeof node.type === 'string'
        ? ['clause', node.type, clauses]
        : ['part', field, parts];
  return Object.hasOwn(shapes, name) ? { kind: `${group} ${name}`, shape: shapes[name]! } : null;
}

/** Returns the fields of a node that contain nodes, or null if the node has a field that is not declared. */
export function nodeFieldsOf(node: TreeNode, { shape }: Declared): readonly string[] | null {
  const fields: string[] = [];
  for (const field of Object.keys(node)) {
    if (shape.nodes.has(field)) fields.push(field);
    else if (!shape.plain.has(field) && !commonFields.has(field)) return null;
  }
  return fields;
}
