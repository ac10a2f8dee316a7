// The store as its callers hold it, in any thread: it packs what they give, and passes it to the writer's or
// the reader's thread.

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import type { InteractionWrite, Memory, Row, Store, Tally, Upload } from '../store.ts';
import { createLink, type Link } from './calls.ts';
import { packRows } from './packed-rows.ts';
import type { ReadOperations } from './read-operations.ts';
import { type ShownHealth, StoreHealth } from './store-health.ts';
import { FORGOTTEN_AT_ONCE, type Job, type PackedUpload, type WriteOperations } from './write-operations.ts';

export type ThreadName = 'writer' | 'reader';

/** What a holder of the store is told about a thread: a way to it, or why there is none. */
export type ThreadNews =
  | (ShownHealth & { readonly thread: ThreadName; readonly port: MessagePort })
  | { readonly thread: ThreadName; readonly lost: string };

type AnsweredWrites = {
  [N in keyof WriteOperations]: (
    ...args: Parameters<WriteOperations[N]>
  ) => ReturnType<WriteOperations[N]> extends Job<infer Result> ? Result : never;
} & { ping(): void };

export interface HeldStore {
  readonly store: Store;
  hear(news: ThreadNews): void;
}

export function holdStore(): HeldStore {
  const writer: Link<AnsweredWrites> = createLink('writer');
  const reader: Link<ReadOperations> = createLink('reader');
  const links = { writer, reader };
  const health = new StoreHealth(links);
  return {
    hear(news) {
      if ('port' in news) {
        health.watch(news.thread, news);
        links[news.thread].connect(news.port);
      } else links[news.thread].lose(news.lost);
    },
    store: {
      createOrganisation: (name, orgId, createdAtMs) =>
        writer.call('createOrganisation', [name, orgId, createdAtMs]),
      organisations: () => reader.call('organisations', []),

      addKey: (key) => writer.call('addKey', [key]),
      findKey: (keyId) => reader.call('findKey', [keyId]),
      keysOf: (organisation) => reader.call('keysOf', [organisation]),
      replaceKey: (keyId, endsAtMs, successor) => writer.call('replaceKey', [keyId, endsAtMs, successor]),
      revokeKey: (keyId, revokedAtMs) => writer.call('revokeKey', [keyId, revokedAtMs]),
      noteKeysUsed: (lastUsedAtMs) => writer.call('noteKeysUsed', [lastUsedAtMs]),

      async existing(organisation, type, ids) {
        if (ids.length === 0) return new Set();
        const idsJson = JSON.stringify(ids);
        const marks = await reader.call('existing', [organisation, type, idsJson], idsJson.length);
        return new Set(ids.filter((_, position) => marks[position] === '1'));
      },
      write(upload) {
        const packed = packUpload(upload);
        const { buffer, byteLength } = packed.rows.bytes;
        return writer.call('write', [packed], byteLength + memoryBytes(packed.memory), buffer);
      },
      async writeInteraction({ organisation, row, memory: given }) {
        const rowJson = row === null ? null : JSON.stringify(row);
        const memory = packMemory(given);
        const bytes = (rowJson?.length ?? 0) + memoryBytes(memory);
        const written = await writer.call('writeInteraction', [organisation, rowJson, memory], bytes);
        return typeof written === 'string' ? { kind: 'written', tallies: [tallyOf(written)] } : written;
      },
      recall: ({ organisation, path, key }, nowMs) =>
        reader.call('recall', [{ organisation, path, key }, nowMs]),
      async forgetExpired(nowMs) {
        while ((await writer.call('forgetExpired', [nowMs])) === FORGOTTEN_AT_ONCE);
      },

      async record(organisation, type, id) {
        return rowsOf(await reader.call('record', [organisation, type, id]))[0] ?? null;
      },
      async records(organisation, type, page) {
        return rowsOf(await reader.call('records', [organisation, type, page]));
      },
      async interaction(organisation, interactionId) {
        return rowsOf(await reader.call('interaction', [organisation, interactionId]))[0] ?? null;
      },
      async interactions(organisation, page) {
        return rowsOf(await reader.call('interactions', [organisation, page]));
      },

      count: (organisation, what) => reader.call('count', [organisation, what]),

      ping: () => health.assertServing(() => writer.call('ping', [])),
      async close() {
        await Promise.all([writer.close(), reader.close()]);
      },
    },
  };
}

/** The store in another thread than the one that opened it; it hears of its threads through the port. */
export function attachSqliteStore(newsPort: MessagePort): Store {
  const { store, hear } = holdStore();
  // What was told before the port got here is there already, so the store can be used at once.
  for (let first = receiveMessageOnPort(newsPort); first; first = receiveMessageOnPort(newsPort)) {
    hear(first.message as ThreadNews);
  }
  newsPort.on('message', hear);
  newsPort.unref();
  return {
    ...store,
    async close() {
      await store.close();
      newsPort.close();
    },
  };
}

function packUpload({ organisation, type, batches, dryRun, memory }: Upload): PackedUpload {
  return {
    organisation,
    type,
    rows: packRows(batches),
    dryRun,
    memory: packMemory(memory),
  };
}

function tallyOf(fate: keyof Tally): Tally {
  return { created: 0, updated: 0, unchanged: 0, [fate]: 1 };
}

/** A view into a larger buffer would drag all of that buffer along to the other thread. */
function packMemory(memory: InteractionWrite['memory']): Memory | null {
  return memory === null ? null : { ...memory, answer: new Uint8Array(memory.answer) };
}

function memoryBytes(memory: Memory | null): number {
  return memory?.answer.length ?? 0;
}

function rowsOf(rowsJson: string): readonly Row[] {
  return JSON.parse(rowsJson) as Row[];
}
