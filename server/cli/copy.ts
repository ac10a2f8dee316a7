// `headgate copy`: copies the content of a database to another one, usually from SQLite to PostgreSQL.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { type Comparison, copyEverything, type Progress } from '../copy.ts';
import { Failure } from '../failure.ts';
import { readSetting } from '../settings.ts';
import type { Call } from './call.ts';
import { columns } from './columns.ts';
import { type ExitCode, exitCodes, failed, misused, printJson } from './io.ts';
import { progressBar, progressLine } from './progress.ts';
import { isMissingFile } from './with-store.ts';

export async function copy({ io, option, isOn }: Call): Promise<ExitCode> {
  const [from, to] = [option('from')!, option('to')!].map((database) =>
    readSetting('database', {}, { database }),
  ) as [string | Failure, string | Failure];
  if (from instanceof Failure) return misused(io, from.reason.replace('--database', '--from'));
  if (to instanceof Failure) return misused(io, to.reason.replace('--database', '--to'));
  const { isSameDatabase, openStore } = await import('../store/open-store.ts');
  if (await isSameDatabase(from, to)) return misused(io, '--from and --to name the same database');
  if (isMissingFile(from)) return failed(io, `--from names ${quote(from)}, and there is no such file`);
  const onTrouble = (trouble: string): void => io.err(`headgate: ${trouble}`);
  await using opened = new AsyncDisposableStack();
  const source = await openStore(from, onTrouble);
  opened.defer(() => source.close());
  const target = await openStore(to, onTrouble);
  opened.defer(() => target.close());
  const line = progressLine(io);
  const comparisons = await copyEverything(source, target, (progress) =>
    line.show(sentence(progress, io.isTerminal)),
  ).finally(() => line.end());
  if (comparisons instanceof Failure) return failed(io, comparisons);
  if (isOn('json')) printJson(io, comparisons.map(asJson));
  else for (const row of columns(tableOf(comparisons))) io.out(row);
  const different = comparisons.filter(({ isEqual }) => !isEqual);
  if (different.length === 0) return exitCodes.done;
  const counts = `${different.length} of ${comparisons.length} comparisons differ`;
  return failed(io, `${counts}; ${different.some(hasOwnEntries) ? diverged : writtenMeanwhile}`);
}

const diverged =
  'the ledger of the target has entries that the source does not have, and they are never replaced. ' +
  'Copy into an empty database';
const writtenMeanwhile =
  'was one of the databases written to during the copy? Stop all writers and run the same command again. ' +
  'If that does not help, copy into an empty database';

/** A ledger that differs although nothing is missing in the target. If the source was written to, some would be. */
function hasOwnEntries({ part, fromCount, toCount }: Comparison): boolean {
  return part === 'ledger' && toCount >= fromCount;
}

function sentence({ doing, organisation, part, doneRows, totalRows }: Progress, isTerminal: boolean): string {
  const share = totalRows === 0 ? 1 : Math.min(1, doneRows / totalRows);
  const bar = isTerminal ? `  ${progressBar(share)}` : ':';
  return `${doing} ${organisation} / ${part}${bar}  ${Math.floor(share * 100)} %  ${doneRows} of ${totalRows}`;
}

function tableOf(comparisons: readonly Comparison[]): string[][] {
  return [
    ['ORGANISATION', 'WHAT', 'FROM', 'TO', 'CONTENT'],
    ...comparisons.map(({ organisation, part, fromCount, toCount, isEqual }) => [
      organisation,
      part,
      String(fromCount),
      String(toCount),
      isEqual ? 'equal' : 'DIFFERENT',
    ]),
  ];
}

function asJson({ organisation, part, fromCount, toCount, isEqual }: Comparison): object {
  return { organisation, part, from_count: fromCount, to_count: toCount, equal: isEqual };
}
