// Generates the parts of the docs that follow from the code, such as the record types, error codes and settings.
// `node docs/write.ts` writes these parts. With `--check` it writes nothing, and exits 1 if a part is out of date.

import { readFile, writeFile } from 'node:fs/promises';
import type { Fields } from '@headgate/catalogue/declaration.ts';
import { problemCodes } from '@headgate/catalogue/problem-codes.ts';
import {
  assignedToInteraction,
  interaction,
  recordTypeNames,
  recordTypes,
  storedInteraction,
  uploadedWithInteraction,
} from '@headgate/catalogue/record-types.ts';
import { dependenciesOf, requirementOf, uploadOrder } from '@headgate/catalogue/references.ts';
import { clientTypes } from '@headgate/catalogue/typescript.ts';
import { columnTypes, type ReplicaTable, replicaTables } from '../server/analytics/replica-tables.ts';
import { fieldPaths } from '../server/analytics/segments/field-paths.ts';
import { conditionFieldsModule } from '../server/analytics/segments/field-types.ts';
import { Failure } from '../server/failure.ts';
import { openApiDocument } from '../server/http/openapi/document.ts';
import { refusals } from '../server/http/refusals.ts';
import { metricTable } from '../server/observe/metric-table.ts';
import { readSettings, settingDescriptions } from '../server/settings.ts';
import { codecs as postgresCodecs } from '../server/store/postgres/codecs.ts';
import { codecs as sqliteCodecs } from '../server/store/sqlite/codecs.ts';
import { catalogueTables, type Table, tableOf } from '../server/store/tables.ts';

const root = new URL('..', import.meta.url);

/** Maps each file to its whole content, or to the content of its parts between `<!-- name -->` and `<!-- /name -->`. */
const targets: Readonly<Record<string, string | Readonly<Record<string, string>>>> = {
  'README.md': { types: typesTable(), settings: settingsTable() },
  'docs/record-types.md': recordTypesPage(),
  'docs/errors.md': { codes: codesTable(), statuses: statusesTable() },
  'docs/openapi.json': openApi(),
  'docs/observing.md': { metrics: metricsTable() },
  'docs/sql.md': { tables: columnTables(), types: columnTypesTable() },
  'docs/segments.md': { fields: conditionFields() },
  'client/records.ts': clientTypes(),
  'client/condition-fields.ts': conditionFieldsModule(),
};

const isCheck = process.argv.includes('--check');
const stale: string[] = [];
for (const [path, content] of Object.entries(targets)) {
  const file = new URL(path, root);
  const present = await readFile(file, 'utf8').catch(() => '');
  const wanted = typeof content === 'string' ? content : withParts(path, present, content);
  if (present === wanted) continue;
  stale.push(path);
  if (!isCheck) await writeFile(file, wanted);
}
if (isCheck && stale.length > 0) {
  console.error(`not current: ${stale.join(', ')}; run: npm run docs`);
  process.exitCode = 1;
} else if (!isCheck) {
  console.log(stale.length === 0 ? 'the docs are current' : `written: ${stale.join(', ')}`);
}

function withParts(path: string, text: string, parts: Readonly<Record<string, string>>): string {
  return Object.entries(parts).reduce((whole, [name, part]) => {
    const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
    const from = whole.indexOf(begin);
    const to = whole.indexOf(end);
    if (from === -1 || to === -1) throw new Error(`${path} lacks ${begin} … ${end}`);
    return `${whole.slice(0, from + begin.length)}\n${part}${whole.slice(to)}`;
  }, text);
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  return [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}

function typesTable(): string {
  const rows = uploadOrder(recordTypes).map((type) => {
    const { key, fields } = recordTypes[type];
    const required = Object.entries(fields as Fields).flatMap(([name, field]) =>
      field.required && name !== key ? [`\`${name}\``] : [],
    );
    const dependencies = dependenciesOf(fields);
    return [`\`${type}\``, `\`${key}\``, required.join(', '), dependencies.join(', ') || 'nothing'];
  });
  return table(['Type', 'Identified by', 'Also required', 'Needs first'], rows);
}

function fieldsTable(fields: Fields): string {
  const rows = Object.entries(fields).map(([name, { kind, required, references, note }]) => {
    const notes = [note, requirementOf(references)].filter(Boolean).join('; ');
    return [`\`${name}\``, kind.accepts, required ? 'yes' : '', notes];
  });
  return table(['Field', 'Takes', 'Required', 'Notes'], rows);
}

function recordTypesPage(): string {
  const order = uploadOrder(recordTypes);
  const sections = order.map((type) => {
    const { title, fields } = recordTypes[type];
    return `## ${title}: \`${type}\`\n\n${fieldsTable(fields)}`;
  });
  return [
    '# Record types\n',
    'This page is written by `npm run docs` from `catalogue/record-types.ts`.\n',
    'An omitted or null optional field is kept as null, `is_deleted` as false. Nothing is converted: `"1"` is ' +
      'not a number. Ids are kept in lower case, regions in upper case, date-times in UTC.\n',
    `Upload in this order and every reference is found: ${order.join(', ')}.\n`,
    ...sections,
    '## Interaction: `POST /user-interactions`\n',
    'Below 100,000,000,000 an integer `event_timestamp` counts seconds, from there on milliseconds.\n',
    fieldsTable(interaction),
    'To record many at once, upload them like records to `POST /v1/data/interactions`. There they may also have:\n',
    fieldsTable(uploadedWithInteraction),
    'Headgate adds:\n',
    fieldsTable(assignedToInteraction),
  ].join('\n');
}

function codesTable(): string {
  const rows = Object.entries(problemCodes).map(([code, { meaning, remedy, retryable }]) => [
    `\`${code}\``,
    meaning,
    remedy,
    retryable ? 'yes' : 'no',
  ]);
  return table(['Code', 'What happened', 'What to do', 'Retryable as it is'], rows);
}

function statusesTable(): string {
  const rows = Object.values(refusals).map((one) => [String(one.status), one.error, one.meaning, one.remedy]);
  return table(['Status', '`error`', 'What happened', 'What to do'], rows);
}

function settingsTable(): string {
  const rows = settingDescriptions.map(({ env, flag, accepts, default: defaultText, help }) => [
    `\`${env}\``,
    flag === null ? '' : `\`--${flag}\``,
    defaultText === null ? '' : `\`${defaultText}\``,
    `${help} Takes ${accepts}.`,
  ]);
  return table(['Setting', 'Flag', 'Default', 'What it does'], rows);
}

function metricsTable(): string {
  const rows = Object.values(metricTable).map(({ name, type, labels, help }) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(', '),
    help,
  ]);
  return table(['Metric', 'Type', 'Labels', 'What it tells'], rows);
}

function columnTables(): string {
  const nullable = new Set(
    recordTypeNames.flatMap((type) =>
      nullableColumns(tableOf(catalogueTables, type), recordTypes[type].fields),
    ),
  ).union(new Set(nullableColumns(catalogueTables.interactions, storedInteraction)));
  const section = ({ name, key, columns }: ReplicaTable): string => {
    const rows = columns.map((column) => [
      `\`${column.name}\``,
      column.type,
      nullable.has(`${name}.${column.name}`) ? 'yes' : 'no',
    ]);
    const keys = key.map((column) => `\`${column}\``).join(', ');
    return `### ${name}\n\nKey: ${keys}.\n\n${table(['Column', 'Type', 'May be null'], rows)}`;
  };
  return replicaTables.map(section).join('\n');
}

function nullableColumns({ name, columns }: Table, fields: Fields): readonly string[] {
  return columns
    .filter((column) => fields[column.name]!.nullable && column.omitted === null)
    .map((column) => `${name}.${column.name}`);
}

/** Returns the column types of both databases for each type of a query. */
function columnTypesTable(): string {
  const kinds = Object.keys(columnTypes) as readonly (keyof typeof columnTypes)[];
  const rows = kinds.map((kind) => [columnTypes[kind], sqliteCodecs[kind].type, postgresCodecs[kind].type]);
  const distinct = new Map(rows.map((row) => [row.join(), row]));
  return table(['Here', 'SQLite', 'PostgreSQL'], [...distinct.values()]);
}

/** Returns, for each type, the fields that a condition can test, in one row for the records to which a path leads. */
function conditionFields(): string {
  const sections = Object.entries(fieldPaths).map(([type, paths]) => {
    const fields = Array.from(paths.values(), ({ text, kind }) => ({ text, kind: kind.name as string }));
    if (type === 'customers') fields.push({ text: 'age', kind: 'number' });
    const byPath = Map.groupBy(fields, ({ text }) => text.slice(0, Math.max(0, text.lastIndexOf('.'))));
    const rows = Array.from(byPath, ([path, ofPath]) => [
      path === '' ? '' : `\`${path}.\``,
      ofPath.map(({ text, kind }) => `\`${text.slice(text.lastIndexOf('.') + 1)}\` ${kind}`).join(', '),
    ]);
    return `### ${type}\n\n${table(['Path', 'Fields and their kinds'], rows)}`;
  });
  return `\n${sections.join('\n')}\n`;
}

/** Returns the API description with the default limits. */
function openApi(): string {
  const settings = readSettings({});
  if (settings instanceof Failure) throw new Error(settings.reason);
  return `${JSON.stringify(openApiDocument(settings), null, 2)}\n`;
}
