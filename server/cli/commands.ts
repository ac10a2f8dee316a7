// The table of commands: the name, arguments, options and help of each command, and the function that runs it. The
// functions import their modules on demand, so that only the code of one command is loaded.

import type { Call } from './call.ts';
import type { ExitCode } from './io.ts';

export interface Command {
  readonly words: readonly string[];
  /** The arguments in order. Only the last one may be optional or given several times. */
  readonly args?: readonly {
    readonly name: string;
    readonly help: string;
    readonly repeats?: true;
    readonly optional?: true;
  }[];
  readonly requiredOptions?: readonly string[];
  readonly options: readonly string[];
  /** What options mean for this command, if it differs from the table of options. */
  readonly optionTexts?: Readonly<Record<string, { readonly value: string; readonly help: string }>>;
  readonly summary: string;
  readonly details?: string;
  readonly examples: readonly string[];
  run(call: Call): Promise<ExitCode>;
}

const ofChanges = { value: 'TYPE', help: 'Only this type: a record type, or user-interactions.' };

const firstDay = {
  value: 'DAY',
  help: 'The first day, in UTC: YYYY-MM-DD. Default: 29 days before the last.',
};
const lastDay = { value: 'DAY', help: 'The last day, in UTC: YYYY-MM-DD. Default: today.' };

const segmentName = { name: 'NAME', help: 'The name of the segment, as `segments list` shows it.' };
const conditionFile = {
  name: 'FILE',
  help: 'A file with the condition as JSON, or with what `segments show --json` prints; - means standard input.',
};

const keyId = { name: 'KEY_ID', help: 'The id of the key, as `keys list` shows it.' };

export const commands: readonly Command[] = [
  {
    words: ['serve'],
    options: ['host', 'port', 'database', 'workers'],
    summary: 'Start the service.',
    details:
      'Prints `listening on URL` once it accepts requests. If it listens only on this machine and the database has ' +
      'no organisation yet, it creates an organisation `demo` with a key and shows how to try it. The first SIGTERM ' +
      'or Ctrl-C lets requests in flight finish and exits 0; a second one exits at once.',
    examples: [
      'headgate serve',
      'headgate serve --port 9000 --database /var/lib/headgate/headgate.db',
      'headgate serve --workers 4 --database postgres://headgate@db.internal/headgate',
    ],
    run: async (call) => (await import('./serve.ts')).serve(call),
  },
  {
    words: ['ready'],
    options: ['host', 'port'],
    summary: 'Check whether the server on this machine is ready.',
    details:
      'Reads the same settings as `serve` and requests /readyz. Exits 0 if the server is ready, and 1 if it is ' +
      'not ready or does not respond within 5 seconds. Use it for container health checks and for scripts that ' +
      'wait until the server has started.',
    examples: ['headgate ready', 'headgate ready --port 9000'],
    run: async (call) => (await import('./ready.ts')).ready(call),
  },
  {
    words: ['orgs', 'create'],
    args: [
      { name: 'NAME', help: 'The name: 1 to 100 visible characters, not used by another organisation.' },
    ],
    options: ['json', 'database'],
    summary: 'Create an organisation.',
    details:
      'Each record, interaction and key belongs to one organisation. Organisations cannot see each other’s data.',
    examples: ['headgate orgs create acme', 'headgate orgs create "Acme Student Discounts" --json'],
    run: async (call) => (await import('./orgs.ts')).createOrg(call),
  },
  {
    words: ['orgs', 'list'],
    options: ['json', 'database'],
    summary: 'List the organisations.',
    examples: ['headgate orgs list'],
    run: async (call) => (await import('./orgs.ts')).listOrgs(call),
  },
  {
    words: ['orgs', 'usage'],
    options: ['org', 'from', 'to', 'by', 'json', 'database'],
    optionTexts: {
      org: { value: 'NAME|ID', help: 'Only this organisation, by its name or its id. Default: all.' },
      from: firstDay,
      to: lastDay,
    },
    summary: 'Show how much organisations have uploaded.',
    details:
      'Adds up the ledger: uploads, records received, created, updated, unchanged and rejected, bytes as they were ' +
      'sent, and interactions created. Shows one line for each organisation or, with --by, for each of its days, ' +
      'types or keys.',
    examples: [
      'headgate orgs usage',
      'headgate orgs usage --org acme --from 2026-01-01 --to 2026-01-31 --by type --json',
    ],
    run: async (call) => (await import('./usage.ts')).showUsage(call),
  },
  {
    words: ['keys', 'issue'],
    requiredOptions: ['org'],
    options: ['scope', 'name', 'expires', 'json', 'database'],
    summary: 'Issue an API key to an organisation.',
    details:
      'The key is shown only once, because only its hash is stored. Running servers accept it at once.',
    examples: [
      'headgate keys issue --org acme',
      'headgate keys issue --org acme --name "nightly import" --scope data:write --expires 90d',
      'headgate keys issue --org acme --scope data:write:shops --scope data:read:shops',
    ],
    run: async (call) => (await import('./keys.ts')).issue(call),
  },
  {
    words: ['keys', 'list'],
    requiredOptions: ['org'],
    options: ['json', 'database'],
    summary: "List an organisation's keys, without their secrets.",
    details:
      'A key with the status `rotated` has a successor and still works until it expires. `--json` shows the ' +
      'successor.',
    examples: ['headgate keys list --org acme'],
    run: async (call) => (await import('./keys.ts')).listKeys(call),
  },
  {
    words: ['keys', 'rotate'],
    args: [keyId],
    options: ['overlap', 'json', 'database'],
    summary: 'Replace a key with a new one; the old one works for a while longer.',
    details:
      'The new key has the name, scopes and lifetime of the old one; the lifetime starts now. The old key expires ' +
      'after the overlap, or at its own expiry if that is sooner. A key can be rotated only once; after that, ' +
      'rotate its successor. Running servers apply the change within 5 seconds.',
    examples: ['headgate keys rotate 1f0c3a5b7d9e', 'headgate keys rotate 1f0c3a5b7d9e --overlap 0s'],
    run: async (call) => (await import('./keys.ts')).rotate(call),
  },
  {
    words: ['keys', 'revoke'],
    args: [keyId],
    options: ['json', 'database'],
    summary: 'Revoke a key permanently.',
    details: 'Running servers refuse the key within 5 seconds. This cannot be undone.',
    examples: ['headgate keys revoke 1f0c3a5b7d9e'],
    run: async (call) => (await import('./keys.ts')).revoke(call),
  },
  {
    words: ['load'],
    args: [
      {
        name: 'PATH',
        repeats: true,
        help:
          'A file, or a folder of files. The part of the file name before the first dot is the type, as in shops.csv, ' +
          'transactions.2024.ndjson.gz or user-interactions.json; or else the folder is named after the type. ' +
          'Formats: .csv, .ndjson, .jsonl and .json, optionally compressed as .gz, .zst or .br. A .json file is an ' +
          'array of at most 32 MiB uncompressed; files in the other formats can have any size.',
      },
    ],
    options: ['type', 'dry-run', 'rejected', 'concurrency', 'lenient', 'restart', 'json', 'url', 'key-file'],
    summary: 'Upload files of records and interactions through the API.',
    details:
      'Files are loaded in dependency order: a type comes after the types that it refers to. The first line of a CSV ' +
      'file has the field names; an empty cell is a missing value, "" is an empty string. Rejected records are ' +
      'written to DIR/TYPE.ndjson, each with its errors, file and line. Correct the "record" in each line and load ' +
      'the file again; records that are rejected again replace the file. If a load is interrupted, run the same ' +
      'command again to resume it; its progress is stored in DIR/.load-…. Ctrl-C lets requests in flight finish. ' +
      'Loading a file twice is safe: records are replaced by the same records, and an interaction with the same ' +
      'file name, line and content is recorded only once within 24 hours. ' +
      'Exit codes: 0 all records accepted; 1 some rejected; 2 the load could not start or did not finish.',
    examples: [
      'headgate load shops.csv transactions.csv.gz',
      'headgate load ./data --dry-run',
      'headgate load 2024.csv --type transactions --url https://data.example.com --key-file key.txt',
      'headgate load rejected/',
    ],
    run: async (call) => (await import('./load/load.ts')).load(call),
  },
  // Comes before `export TYPE`, because the first command that matches is run.
  {
    words: ['export', 'all'],
    args: [{ name: 'DIR', help: 'The folder to write to. It is created if it does not exist.' }],
    options: ['format', 'since', 'force', 'text-ids', 'url', 'key-file'],
    optionTexts: {
      format: {
        value: 'csv|ndjson|parquet',
        help: 'The format of the files: csv, ndjson or parquet. Default: ndjson.',
      },
    },
    summary: 'Export everything to a folder.',
    details:
      'Writes one file per type, including records that are marked as deleted, and then the file `position`. `load` ' +
      'accepts the folder, unless the format is parquet. ' +
      'The file has the position of the ledger when the export began, from which `export --since` and `changes --after` ' +
      'continue: what changes during the export comes after the position. A folder with this file is complete.',
    examples: [
      'headgate export all ./everything',
      'headgate export all ./since-then --since 41',
      'headgate export all ./for-analysis --format parquet',
    ],
    run: async (call) => (await import('./export.ts')).exportAll(call),
  },
  {
    words: ['export'],
    args: [{ name: 'TYPE', help: 'A record type, such as shops, or user-interactions.' }],
    options: [
      'format',
      'out',
      'since',
      'force',
      'include-deleted',
      'spreadsheet-safe',
      'text-ids',
      'url',
      'key-file',
    ],
    optionTexts: {
      format: {
        value: 'csv|ndjson|parquet',
        help: 'The format of the records: csv, ndjson or parquet. Default: as the name of FILE ends, or else ndjson.',
      },
    },
    summary: 'Export all records of a type, as CSV, NDJSON or Parquet.',
    details:
      'Writes to standard output or to a file. `load` accepts CSV and NDJSON, which are compressed if the name of the ' +
      'file ends in .gz. Parquet has the columns and types of `headgate sql`, and is always compressed with zstd. An ' +
      'existing file is replaced only with --force; a database is never replaced. In CSV and NDJSON, interactions ' +
      'omit occurred_at, which the server computes from event_timestamp. With --since, only what has changed after a ' +
      'position is written, and standard error shows the position to continue from. `headgate export all DIR` exports ' +
      'every type.',
    examples: [
      'headgate export shops',
      'headgate export transactions --format csv --out transactions.csv --include-deleted',
      'headgate export transactions --out transactions.parquet',
      'headgate export shops --since 41',
    ],
    run: async (call) => (await import('./export.ts')).exportRecords(call),
  },
  {
    words: ['changes'],
    requiredOptions: ['after'],
    options: ['follow', 'type', 'url', 'key-file'],
    optionTexts: { type: ofChanges },
    summary: 'Print what has changed, as NDJSON.',
    details:
      'Prints a line {"seq", "type", "id", "record"} for every record and interaction that has changed after the ' +
      'position, with its current state. Ends when it is up to date, and shows the position to continue from on ' +
      'standard error. With --follow it goes on until it gets SIGINT or SIGTERM, and waits for the server if that ' +
      'fails. To continue after a crash, give the `seq` of the last line that was processed, minus 1.',
    examples: ['headgate changes --after 0', 'headgate changes --after 41 --follow --type shops'],
    run: async (call) => (await import('./changes.ts')).changes(call),
  },
  {
    words: ['uploads', 'list'],
    options: ['type', 'status', 'key', 'from', 'to', 'limit', 'json', 'url', 'key-file'],
    optionTexts: {
      type: ofChanges,
      from: {
        value: 'TIME',
        help: 'Only uploads received at this time or later: a date, or an ISO 8601 date-time.',
      },
      to: { value: 'TIME', help: 'Only uploads received before this time.' },
    },
    summary: 'List what was uploaded, newest first.',
    details: 'Lists uploads, and groups of single interactions that were stored together.',
    examples: ['headgate uploads list', 'headgate uploads list --status partial --from 2026-01-31 --json'],
    run: async (call) => (await import('./uploads.ts')).listUploads(call),
  },
  {
    words: ['uploads', 'show'],
    args: [
      {
        name: 'UPLOAD',
        help: 'Its request id or the number of its entry, as `uploads list` and the response to the upload show them.',
      },
    ],
    options: ['json', 'url', 'key-file'],
    summary: 'Show an upload, and why records were rejected.',
    details: 'Records are counted from 0, in the order of the upload.',
    examples: ['headgate uploads show 0195d1f2-7c3a-7000-8b1e-2f4a6c8e0d13'],
    run: async (call) => (await import('./uploads.ts')).showUpload(call),
  },
  {
    words: ['sql'],
    args: [
      {
        name: 'QUERY',
        optional: true,
        help: 'One SELECT statement of DuckDB. Without it, give --file FILE.',
      },
    ],
    options: ['file', 'param', 'format', 'out', 'force', 'spreadsheet-safe', 'url', 'key-file'],
    optionTexts: {
      format: {
        value: 'csv|ndjson|parquet|json',
        help:
          "The format of the server's response, which is passed on as it arrives: csv, ndjson, parquet or json. " +
          'Default: as the name of FILE ends, or else a table.',
      },
    },
    summary: 'Run an SQL query on everything that the organisation has uploaded.',
    details:
      'Prints a table that fits the terminal: long values are cut, and null is empty. Then standard error shows how ' +
      'many rows there are, and up to which entry of the ledger the query has seen the data. A table and json have a ' +
      "limit of rows, which the server sets; csv, ndjson and parquet have none. With --out, the server's response is " +
      'written to a file, which is compressed if its name ends in .gz. An existing file is replaced only with ' +
      '--force. `DESCRIBE shops` shows the columns of a table.',
    examples: [
      'headgate sql "SELECT region, count(*) AS shops FROM shops GROUP BY region"',
      'headgate sql "SELECT * FROM transactions WHERE amount > ? AND region = ?" --param 100 --param DE',
      'headgate sql --file revenue.sql --out revenue.parquet',
    ],
    run: async (call) => (await import('./sql.ts')).sql(call),
  },
  {
    words: ['segments', 'list'],
    options: ['json', 'url', 'key-file'],
    summary: 'List the segments and their last evaluations.',
    details:
      'A segment is a saved condition on customers and what they did. The server evaluates all segments regularly. ' +
      'The columns show how long ago that was, how long it took, and how many customers entered and left. If an ' +
      'evaluation fails, the members stay. The key needs the scope analytics:read, and analytics:write to save, ' +
      'refresh and delete. The page docs/segments.md explains conditions.',
    examples: ['headgate segments list', 'headgate segments list --json'],
    run: async (call) => (await import('./segments.ts')).listSegments(call),
  },
  {
    words: ['segments', 'show'],
    args: [segmentName],
    options: ['json', 'url', 'key-file'],
    summary: 'Show a segment, its condition and its last evaluation.',
    examples: ['headgate segments show regulars', 'headgate segments show regulars --json'],
    run: async (call) => (await import('./segments.ts')).showSegment(call),
  },
  {
    words: ['segments', 'preview'],
    args: [conditionFile],
    options: ['json', 'url', 'key-file'],
    summary: 'Count the customers for whom a condition and its parts hold.',
    details:
      'Prints the condition as a tree, with the exact number of customers for each part and a bar. Saves nothing.',
    examples: ['headgate segments preview regulars.json', 'headgate segments preview regulars.json --json'],
    run: async (call) => (await import('./segments.ts')).previewSegment(call),
  },
  {
    words: ['segments', 'save'],
    args: [
      {
        name: 'NAME',
        help: 'The name: lower-case letters, digits, hyphens and underscores, beginning with a letter or digit.',
      },
      conditionFile,
    ],
    options: ['note', 'json', 'url', 'key-file'],
    summary: 'Save a segment and evaluate it.',
    details:
      'Replaces the condition and the note of an existing segment. Customers who stay members keep the time since ' +
      'which they are. If the condition cannot be evaluated now, the segment is saved and the command exits 1.',
    examples: [
      'headgate segments save regulars regulars.json --note "Who buys often"',
      'headgate segments save regulars regulars.json --json',
    ],
    run: async (call) => (await import('./segments.ts')).saveSegment(call),
  },
  {
    words: ['segments', 'members'],
    args: [segmentName],
    options: ['format', 'url', 'key-file'],
    optionTexts: {
      format: {
        value: 'table|ndjson|csv',
        help: 'The format of the members: table, ndjson or csv. Default: table.',
      },
    },
    summary: 'Print all members of a segment.',
    details:
      'Prints the members as of the last evaluation, in the order of their ids, and since when they are members.',
    examples: ['headgate segments members regulars', 'headgate segments members regulars --format csv'],
    run: async (call) => (await import('./segments.ts')).listMembers(call),
  },
  {
    words: ['segments', 'why'],
    args: [segmentName, { name: 'CUSTOMER_ID', help: 'The `customer_id` of the customer.' }],
    options: ['json', 'url', 'key-file'],
    summary: 'Explain why a customer is a member of a segment or not.',
    details:
      'Evaluates the condition for the customer now, and prints it as a tree: whether each part holds, and the value ' +
      'that it saw.',
    examples: ['headgate segments why regulars 8b6f1c2e-0d5a-4f3b-9c7e-1a2b3c4d5e6f'],
    run: async (call) => (await import('./segments.ts')).explainMember(call),
  },
  {
    words: ['segments', 'refresh'],
    args: [segmentName],
    options: ['json', 'url', 'key-file'],
    summary: 'Evaluate a segment now.',
    details: 'If the evaluation fails, the members stay and the command exits 1.',
    examples: ['headgate segments refresh regulars'],
    run: async (call) => (await import('./segments.ts')).refreshSegment(call),
  },
  {
    words: ['segments', 'delete'],
    args: [segmentName],
    options: ['json', 'url', 'key-file'],
    summary: 'Delete a segment, with its members and their changes.',
    details: 'A segment that another one uses is not deleted. This cannot be undone.',
    examples: ['headgate segments delete regulars'],
    run: async (call) => (await import('./segments.ts')).deleteSegment(call),
  },
  {
    words: ['report', 'recommendations'],
    options: ['from', 'to', 'by', 'holdout', 'json', 'url', 'key-file'],
    optionTexts: {
      from: firstDay,
      to: lastDay,
      by: {
        value: 'GROUP',
        help: 'Split the report into groups: by item_type, day, platform or interaction_type.',
      },
    },
    summary: 'Show what students do and buy after recommendations and without them.',
    details:
      'Prints how much of the data can be used, what students did, and what they bought within 1, 7 and 30 days after ' +
      'it, as tables that fit the terminal, with a bar for each rate. Columns for which there is no room are named ' +
      'at the end. The key needs the scope analytics:read. The page docs/recommendations.md defines each figure.',
    examples: [
      'headgate report recommendations',
      'headgate report recommendations --from 2026-03-01 --to 2026-03-31 --by platform',
      'headgate report recommendations --by day --json',
      'headgate report recommendations --holdout control',
    ],
    run: async (call) => (await import('./report.ts')).reportRecommendations(call),
  },
  {
    words: ['copy'],
    requiredOptions: ['from', 'to'],
    options: ['json'],
    summary: 'Copy everything to another database.',
    details:
      'Copies organisations, keys, records, interactions, ledgers and segments, but not idempotency records. Stop the ' +
      'server first, so that nothing is written during the copy. The command can be interrupted and run again. The ' +
      'segments of the target are replaced. At the end it compares both databases, and exits 1 if they differ.',
    examples: [
      'headgate copy --from sqlite:./data/headgate.db --to postgres://headgate@db.internal/headgate',
    ],
    run: async (call) => (await import('./copy.ts')).copy(call),
  },
  {
    words: ['backup'],
    args: [{ name: 'FILE', help: 'The backup file to create. Its folder must exist.' }],
    options: ['force', 'json', 'database'],
    summary: 'Back up a SQLite database, even while a server is running.',
    details:
      'FILE is a complete snapshot of the database: organisations, key hashes, records, interactions, ledgers and ' +
      'idempotency records. It gets its name only after it has passed the integrity check. To restore it, stop the ' +
      'server and replace the database with FILE. To back up PostgreSQL, use pg_dump.',
    examples: [
      'headgate backup backups/monday.db',
      'headgate backup /mnt/backups/headgate.db --force --database /var/lib/headgate/headgate.db',
    ],
    run: async (call) => (await import('./backup.ts')).backup(call),
  },
  {
    words: ['sample'],
    args: [{ name: 'DIR', help: 'The folder to write to. It is created if it does not exist.' }],
    options: ['customers', 'seed', 'until', 'format', 'gzip', 'force', 'json'],
    summary: 'Write sample data of every type, for trials and measurements.',
    details:
      'Writes one file per type, named so that `headgate load` accepts it; interactions are always NDJSON. A ' +
      'customer has about 10 transactions and 7 interactions in two years. There is one shop for every 100 ' +
      'customers, with a minimum of 60 and a maximum of 5000. All references are valid. The same customers, seed ' +
      'and date produce the same records on every machine.',
    examples: [
      'headgate sample ./sample',
      'headgate sample ./large --customers 100000 --seed 7 --format ndjson --gzip',
    ],
    run: async (call) => (await import('./sample/sample.ts')).sample(call),
  },
  {
    words: ['migrate'],
    options: ['json', 'database'],
    summary: 'Migrate a database to the current schema, and distribute it with Citus.',
    details:
      'Every command migrates the database when it opens it. Only this one distributes tables that existed before ' +
      'the database had Citus. Servers may keep running; their queries on a table wait while it is being moved. ' +
      'There is no time limit; a step that takes more than two seconds shows its progress on standard error. The ' +
      'command can be interrupted and run again, and does nothing if the database is up to date.',
    examples: ['headgate migrate', 'headgate migrate --json'],
    run: async (call) => (await import('./migrate.ts')).migrate(call),
  },
];
