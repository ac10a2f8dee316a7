// The table of commands: what each is called and takes, what its help says, and what it runs.

import { backup } from './backup.ts';
import type { Call } from './call.ts';
import { copy } from './copy.ts';
import { exportRecords } from './export.ts';
import type { ExitCode } from './io.ts';
import { issue, listKeys, revoke, rotate } from './keys.ts';
import { load } from './load/load.ts';
import { migrate } from './migrate.ts';
import { createOrg, listOrgs } from './orgs.ts';
import { ready } from './ready.ts';
import { serve } from './serve.ts';

export interface Command {
  readonly words: readonly string[];
  /** Only the last one may be given several times. */
  readonly args: readonly { readonly name: string; readonly help: string; readonly repeats?: true }[];
  readonly requiredOptions: readonly string[];
  readonly options: readonly string[];
  readonly summary: string;
  readonly details: string;
  readonly examples: readonly string[];
  run(call: Call): Promise<ExitCode>;
}

const keyId = { name: 'KEY_ID', help: 'The id of the key, as `keys list` shows it.' };

export const commands: readonly Command[] = [
  {
    words: ['serve'],
    args: [],
    requiredOptions: [],
    options: ['host', 'port', 'database', 'workers'],
    summary: 'Start the service.',
    details:
      'Prints `listening on URL` when it can answer. On an empty database on this machine it makes an ' +
      'organisation `demo` with a key and shows how to try it. A first SIGTERM or Ctrl-C finishes what is in ' +
      'flight and exits 0; a second one ends at once.',
    examples: [
      'headgate serve',
      'headgate serve --port 9000 --database /var/lib/headgate/headgate.db',
      'headgate serve --workers 4 --database postgres://headgate@db.internal/headgate',
    ],
    run: serve,
  },
  {
    words: ['ready'],
    args: [],
    requiredOptions: [],
    options: ['host', 'port'],
    summary: 'Ask the server on this machine whether it can serve.',
    details:
      'Reads the same settings as `serve`, asks its /readyz, and exits 0 if it is ready, 1 if it is not or does ' +
      'not answer within 5 seconds. For the health check of a container, and for scripts that wait for a start.',
    examples: ['headgate ready', 'headgate ready --port 9000'],
    run: ready,
  },
  {
    words: ['orgs', 'create'],
    args: [
      { name: 'NAME', help: 'The name: 1 to 100 visible characters, not taken by another organisation.' },
    ],
    requiredOptions: [],
    options: ['json', 'database'],
    summary: 'Make an organisation.',
    details: 'Records, interactions and keys belong to one organisation, which sees nothing of the others.',
    examples: ['headgate orgs create acme', 'headgate orgs create "Acme Student Discounts" --json'],
    run: createOrg,
  },
  {
    words: ['orgs', 'list'],
    args: [],
    requiredOptions: [],
    options: ['json', 'database'],
    summary: 'List the organisations.',
    details: '',
    examples: ['headgate orgs list'],
    run: listOrgs,
  },
  {
    words: ['keys', 'issue'],
    args: [],
    requiredOptions: ['org'],
    options: ['scope', 'name', 'expires', 'json', 'database'],
    summary: 'Issue an API key to an organisation.',
    details:
      'The key is shown this once and never again: only a hash of it is stored. ' +
      'A server that is running takes it at once.',
    examples: [
      'headgate keys issue --org acme',
      'headgate keys issue --org acme --name "nightly import" --scope data:write --expires 90d',
      'headgate keys issue --org acme --scope data:write:shops --scope data:read:shops',
    ],
    run: issue,
  },
  {
    words: ['keys', 'list'],
    args: [],
    requiredOptions: ['org'],
    options: ['json', 'database'],
    summary: "List an organisation's keys, never their secrets.",
    details:
      'A key whose status is `rotated` has a successor, which `--json` names, and still works until it expires.',
    examples: ['headgate keys list --org acme'],
    run: listKeys,
  },
  {
    words: ['keys', 'rotate'],
    args: [keyId],
    requiredOptions: [],
    options: ['overlap', 'json', 'database'],
    summary: 'Replace a key by a new one; the old one works a while longer.',
    details:
      'The new key has the name and scopes of the old one and lives as long as that was meant to, counted from ' +
      'now. The old key ends after the overlap, or at its own expiry where that is sooner. ' +
      'A key is rotated once: the next time it is the turn of the new one. ' +
      'Servers that are running follow within 5 seconds.',
    examples: ['headgate keys rotate 1f0c3a5b7d9e', 'headgate keys rotate 1f0c3a5b7d9e --overlap 0s'],
    run: rotate,
  },
  {
    words: ['keys', 'revoke'],
    args: [keyId],
    requiredOptions: [],
    options: ['json', 'database'],
    summary: 'End a key for good.',
    details: 'Servers that are running refuse it within 5 seconds. It cannot be undone.',
    examples: ['headgate keys revoke 1f0c3a5b7d9e'],
    run: revoke,
  },
  {
    words: ['load'],
    args: [
      {
        name: 'PATH',
        repeats: true,
        help:
          'A file, or a folder of files. A name up to its first dot is the type, as in shops.csv, ' +
          'transactions.2024.ndjson.gz, user-interactions.json; or the folder has the name of the type. Formats: ' +
          '.csv, .ndjson, .jsonl, .json, each also with .gz, .zst, .br. A .json file is an array of at most 32 MiB, ' +
          'unpacked; the others may have any size.',
      },
    ],
    requiredOptions: [],
    options: ['type', 'dry-run', 'rejected', 'concurrency', 'lenient', 'restart', 'json', 'url', 'key-file'],
    summary: 'Upload files of records and interactions through the API.',
    details:
      'They go in the order in which every reference is found. CSV has a line of field names first; an empty cell is an ' +
      'absent value, "" an empty text. Rejected records are written to DIR/TYPE.ndjson, each with its errors, file ' +
      'and line: mend what is under "record" and load the file again; what is still rejected then takes its ' +
      'place. A load that was interrupted goes on where it was when the same command is run again (a file .load-… in ' +
      'DIR remembers it); Ctrl-C lets what is under way finish. Loading twice is harmless: records replace ' +
      'themselves, and interactions of the same line and content are recorded once within 24 hours. ' +
      'Exit codes: 0 all accepted; 1 some rejected; 2 could not run, or not to the end.',
    examples: [
      'headgate load shops.csv transactions.csv.gz',
      'headgate load ./data --dry-run',
      'headgate load 2024.csv --type transactions --url https://data.example.com --key-file key.txt',
      'headgate load rejected/',
    ],
    run: load,
  },
  {
    words: ['export'],
    args: [{ name: 'TYPE', help: 'A record type, such as shops, or user-interactions.' }],
    requiredOptions: [],
    options: ['format', 'out', 'force', 'include-deleted', 'spreadsheet-safe', 'url', 'key-file'],
    summary: 'Write all records of a type, as `load` takes them back.',
    details:
      'To standard output, or to a file, which is packed where its name ends in .gz. A file that exists is replaced only ' +
      'with --force, a database never. Of interactions it leaves out what the server assigned (interaction_id, ' +
      'occurred_at, created), so that they can be loaded elsewhere.',
    examples: [
      'headgate export shops',
      'headgate export transactions --format csv --out transactions.csv --include-deleted',
    ],
    run: exportRecords,
  },
  {
    words: ['copy'],
    args: [],
    requiredOptions: ['from', 'to'],
    options: ['json'],
    summary: 'Copy everything to another database.',
    details:
      'Organisations, keys, records and interactions; kept answers of idempotency keys stay behind. Stop the ' +
      'server first, so that nothing is written meanwhile. Can be interrupted and run again. Ends by comparing ' +
      'both sides, and exits 1 where they differ.',
    examples: [
      'headgate copy --from sqlite:./data/headgate.db --to postgres://headgate@db.internal/headgate',
    ],
    run: copy,
  },
  {
    words: ['backup'],
    args: [{ name: 'FILE', help: 'The backup to make, in a folder that is there.' }],
    requiredOptions: [],
    options: ['force', 'json', 'database'],
    summary: 'Back up a SQLite database, also while a server takes uploads.',
    details:
      'FILE is one moment of the database, whole: organisations, hashes of keys, records, interactions and kept ' +
      'answers of idempotency keys. It gets its name once it has passed the integrity check. To restore it, stop ' +
      'the server and put it in the place of the database. PostgreSQL is backed up with pg_dump.',
    examples: [
      'headgate backup backups/monday.db',
      'headgate backup /mnt/backups/headgate.db --force --database /var/lib/headgate/headgate.db',
    ],
    run: backup,
  },
  {
    words: ['sample'],
    args: [{ name: 'DIR', help: 'The folder to write to, made if it is missing.' }],
    requiredOptions: [],
    options: ['customers', 'seed', 'until', 'format', 'gzip', 'force', 'json'],
    summary: 'Write made-up data of every type, to try and to measure with.',
    details:
      'One file per type, named as `headgate load` takes them; interactions are always NDJSON. A customer has about ' +
      '10 transactions and 5 interactions in two years; there is a shop for every 100 customers, but no fewer than ' +
      '60 and no more than 5000. All references hold. The same customers, seed and date give the same records on ' +
      'every machine.',
    examples: [
      'headgate sample ./sample',
      'headgate sample ./large --customers 100000 --seed 7 --format ndjson --gzip',
    ],
    // Imported when it is run: no other command needs what it is made of.
    run: async (call) => (await import('./sample/sample.ts')).sample(call),
  },
  {
    words: ['migrate'],
    args: [],
    requiredOptions: [],
    options: ['json', 'database'],
    summary: 'Bring a database up to date, and spread it over a Citus cluster.',
    details:
      'Every command brings the database up to date when it opens it. Only this one spreads tables that were ' +
      'there before the database had Citus. Servers may run; what they ask of a table waits while it is being ' +
      'moved. A step may take as long as it needs; one that takes more than two seconds shows its progress on ' +
      'standard error. It can be interrupted and run again, and does nothing where there is nothing to do.',
    examples: ['headgate migrate', 'headgate migrate --json'],
    run: migrate,
  },
];
