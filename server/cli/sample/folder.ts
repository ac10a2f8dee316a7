// The folder of a sample: which files it may contain, and whether a new sample may be written there.

import type { Dirent } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { Failure } from '../../failure.ts';
import { INTERACTIONS, type LoadType, loadOrder } from '../load/file-types.ts';
import { makeFolder } from '../make-folder.ts';

export const formats = ['csv', 'ndjson'] as const;
export type Format = (typeof formats)[number];

/** Interactions are always NDJSON. */
export function formatFor(type: LoadType, wanted: Format): Format {
  return type === INTERACTIONS ? 'ndjson' : wanted;
}

/** The extension of incomplete files. */
export const PARTIAL = '.partial';

export function fileName(type: LoadType, wanted: Format, isPacked: boolean): string {
  return `${type}.${formatFor(type, wanted)}${isPacked ? '.gz' : ''}`;
}

const everyName: ReadonlySet<string> = new Set(
  loadOrder.flatMap((type) =>
    formats.flatMap((format) => [fileName(type, format, false), fileName(type, format, true)]),
  ),
);

function isLeftOver(name: string): boolean {
  return name.endsWith(PARTIAL) && everyName.has(name.slice(0, -PARTIAL.length));
}

export interface SampleFolder {
  /** The files of an earlier sample, which the new one replaces. */
  readonly earlier: readonly string[];
  /** Whether the folder was created for this sample. */
  readonly isNew: boolean;
}

/** Creates the folder if it does not exist. Returns a Failure if the sample cannot be written to it. */
export async function prepareFolder(folder: string, mayReplace: boolean): Promise<SampleFolder | Failure> {
  let entries: Dirent[];
  let isNew: boolean;
  try {
    isNew = makeFolder(folder);
    entries = await readdir(folder, { withFileTypes: true });
  } catch (error) {
    return new Failure(whyUnwritable(error as NodeJS.ErrnoException, folder));
  }
  const strangers = entries.filter(
    (entry) => !(entry.isFile() && (everyName.has(entry.name) || isLeftOver(entry.name))),
  );
  if (strangers.length > 0) {
    const others = strangers.length === 1 ? '' : ` and ${strangers.length - 1} more`;
    return new Failure(
      `${quote(folder)} holds ${quote(strangers[0]!.name)}${others}, which no sample has made; choose a new folder`,
    );
  }
  const earlier = entries.map(({ name }) => name).filter((name) => everyName.has(name));
  if (earlier.length > 0 && !mayReplace) {
    return new Failure(
      `${quote(folder)} holds ${quote(earlier[0]!)} already; choose a new folder, or replace the sample in it ` +
        'with --force',
    );
  }
  // Deletes the files of an earlier run that was killed.
  for (const { name } of entries) if (isLeftOver(name)) await rm(join(folder, name), { force: true });
  return { earlier, isNew };
}

/** Returns a sentence that explains the error to the user. */
export function whyUnwritable(
  { code, message }: { readonly code?: string | undefined; readonly message: string },
  folder: string,
): string {
  const shown = quote(folder);
  if (code === 'EACCES' || code === 'EPERM') {
    return `this user may not write to ${shown}; choose another folder, or change its permissions`;
  }
  if (code === 'EEXIST' || code === 'ENOTDIR') return `${shown} is not a folder; choose another name`;
  // This happens in /proc, for example, where only the system can create folders.
  if (code === 'ENOENT') return `no folder can be made at ${shown}; choose another`;
  if (code === 'EROFS') return `${shown} is on a file system that can only be read; choose another folder`;
  if (code === 'ENOSPC' || code === 'EDQUOT') {
    return `there is no room left for ${shown}; free some, choose another disk, or ask for fewer --customers`;
  }
  return `${shown} cannot be written to: ${message}`;
}
