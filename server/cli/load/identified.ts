// Gives every interaction of a file an id, so that loading the file again stores nothing twice. The id is derived from
// the file name, the line and the content. A file of rejected interactions keeps the original file name and line of each
// interaction, so that the id stays the same.

import { createHash } from 'node:crypto';
import { basename } from 'node:path';
import { orderedUuid } from '@headgate/client/connection.ts';
import { jsonText, jsonTextOf } from '@headgate/client/slices.ts';
import type { Feed } from './feed.ts';

export async function* identified(feed: Feed, path: string): AsyncIterable<unknown> {
  let index = 0;
  for (let records = await feed.nextRecords(); records !== null; records = await feed.nextRecords()) {
    for (const record of records) {
      const { line, origin } = feed.placeOf(index++);
      yield isUnidentified(record)
        ? new Identified(record, origin?.file ?? path, origin?.line ?? line)
        : record;
    }
  }
}

function isUnidentified(record: unknown): record is object {
  if (typeof record !== 'object' || record === null || Array.isArray(record)) return false;
  const { interaction_id: id = null } = record as { readonly interaction_id?: unknown };
  return id === null || id === '';
}

/** An interaction with its derived id. In a file of rejected records, it appears without the id. */
class Identified {
  readonly #interaction: object;
  readonly interaction_id: string;

  constructor(interaction: object, path: string, line: number | null) {
    this.#interaction = interaction;
    const origin = JSON.stringify([basename(path), line, jsonTextOf(interaction)]);
    this.interaction_id = orderedUuid(line ?? 0, createHash('sha256').update(origin).digest(), 8);
  }

  [jsonText](): string {
    const values = JSON.parse(jsonTextOf(this.#interaction)) as object;
    return JSON.stringify({ ...values, interaction_id: this.interaction_id });
  }

  toJSON(): object {
    return this.#interaction;
  }
}
