// The table of commands: what each is called and takes, what its help says, and what it runs.

import type { Call } from './call.ts';
import { copy } from './copy.ts';
import type { ExitCode } from './io.ts';
import { issue, listKeys, revoke, rotate } from './keys.ts';
import { migrate } from './migrate.ts';
import { createOrg, listOrgs } from './orgs.ts';
import { serve } from './serve.ts';

export interface Command {
  readonly words: readonly string[];
  readonly args: readonly { readonly name: string; readonly help: string }[];
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
    words: ['orgs', 'create'],
    args: [{ name: 'NAME', help: 'The name: 1 to 100 characters, not taken by another organisation.' }],
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
    words: ['migrate'],
    args: [],
    requiredOptions: [],
    options: ['json', 'database'],
    summary: 'Bring a database up to date, and spread it over a Citus cluster.',
    details:
      'Every command brings the database up to date when it opens it. Only this one spreads tables that were ' +
      'there before the database had Citus. Servers may run; what they ask of a table waits while it is being ' +
      'moved. It can be interrupted and run again, and does nothing where there is nothing to do.',
    examples: ['headgate migrate', 'headgate migrate --json'],
    run: migrate,
  },
];
