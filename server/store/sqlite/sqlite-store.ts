// The store as its callers hold it, in any thread: it packs what they give, and passes it to the thread whose work
// it is.

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { interactionPosition } from '../listing.ts';
import type { IngestStore, InteractionWrite, Memory, Row, Store, Tally, Upload } from '../store.ts';
import { catalogueTables } from '../tables.ts';
import { createLink, type Link } from './calls.ts';
import { asStoreError } from './database.ts';
import type { OpenedFiles } from './file-identity.ts';
import { packRows } from './packed-rows.ts';
import { createLookUps, type Lists, type LookUps, type Steps } from './read-operations.ts';
import { ReadingConnection } from './reading-connection.ts';
import { type ShownHealth, StoreHealth } from './store-health.ts';
import type { ThreadName } from './thread.ts';
import type { Job, PackedUpload, WriteOperations } from './write-operations.ts';

/** What a holder of the store is told about a thread: a way to it, or why there is none. */
export type ThreadNews =
  | (ShownHealth & { readonly thread: ThreadName; readonly port: MessagePort })
  | { readonly thread: ThreadName; readonly lost: string };

type AnsweredWrites = {
  [N in keyof WriteOperations]: (
    ...args: Parameters<WriteOperations[N]>
  ) => ReturnType<WriteOperations[N]> extends Job<infer Result> ? Result : never;
} & { ping(): void };

type AnsweredLists = {
  [N in keyof Lists]: (
    ...args: Parameters<Lists[N]>
  ) => ReturnType<Lists[N]> extends Steps<infer Result> ? Result : never;
};

/** Reference checks go to random places of the key indexes; their inner pages and warm leaves fit in this. */
const LOOK_UP_CACHE_KIB = 16 * 1024;
const BYTES_PER_ID = 40;

/** For a call of no organisation. */
const nobodys = { organisation: null };

/** Keys whose use is noted in one call, so that other writes do not wait for all of them. */
const KEYS_NOTED_AT_ONCE = 500;

export interface HeldStore {
  readonly store: Store;
  hear(news: ThreadNews): void;
}

export function holdStore(): HeldStore {
  const writer: Link<AnsweredWrites> = createLink('writer');
  const reader: Link<LookUps> = createLink('reader');
  const lister: Link<AnsweredLists> = createLink('lister');
  const links = { writer, reader, lister };
  // Without its lister the store serves everything but lists.
  const health = new StoreHealth({ writer, reader });
  return {
    hear(news) {
      if ('port' in news && news.thread !== 'lister') health.watch(news.thread, news);
      connect(links[news.thread], news);
    },
    store: {
      createOrganisation: (name, orgId, createdAtMs) =>
        writer.call('createOrganisation', [name, orgId, createdAtMs], nobodys),
      organisations: () => reader.call('organisations', [], nobodys),

      addKey: (key) => writer.call('addKey', [key], nobodys),
      findKey: (keyId) => reader.call('findKey', [keyId], nobodys),
      keysOf: (organisation) => reader.call('keysOf', [organisation], { organisation }),
      replaceKey: (keyId, endsAtMs, successor) =>
        writer.call('replaceKey', [keyId, endsAtMs, successor], nobodys),
      revokeKey: (keyId, revokedAtMs) => writer.call('revokeKey', [keyId, revokedAtMs], nobodys),
      async noteKeysUsed(lastUsedAtMs) {
        const uses = [...lastUsedAtMs];
        for (let first = 0; first < uses.length; first += KEYS_NOTED_AT_ONCE) {
          const some = new Map(uses.slice(first, first + KEYS_NOTED_AT_ONCE));
          await writer.call('noteKeysUsed', [some], nobodys);
        }
      },

      async existing(organisation, type, ids) {
        if (ids.length === 0) return new Set();
        const options = { organisation, bytes: ids.length * BYTES_PER_ID };
        return reader.call('existing', [organisation, type, ids], options);
      },
      ...writesThrough(writer),
      recall: ({ organisation, path, key }, nowMs) =>
        reader.call('recall', [{ organisation, path, key }, nowMs], { organisation }),
      async forgetExpired(nowMs) {
        while (await writer.call('forgetExpired', [nowMs], nobodys));
      },

      async record(organisation, type, id) {
        return rowsOf(await reader.call('record', [organisation, type, id], { organisation }))[0] ?? null;
      },
      async records(organisation, type, page) {
        const { rowsJson, next } = await lister.call('records', [organisation, type, page], { organisation });
        return { rows: rowsOf(rowsJson), next: next === null ? null : next[0]! };
      },
      async interaction(organisation, interactionId) {
        const rowsJson = await reader.call('interaction', [organisation, interactionId], { organisation });
        return rowsOf(rowsJson)[0] ?? null;
      },
      async interactions(organisation, page) {
        const { rowsJson, next } = await lister.call('interactions', [organisation, page], { organisation });
        return { rows: rowsOf(rowsJson), next: next === null ? null : interactionPosition(next) };
      },

      count: (organisation, what) => lister.call('count', [organisation, what], { organisation }),

      ping: () => health.assertServing(() => writer.call('ping', [], nobodys)),
      async close() {
        await Promise.all([writer.close(), reader.close(), lister.close()]);
      },
    },
  };
}

/** What another thread needs to attach to an open store. */
export interface SqliteStoreHandle {
  readonly files: OpenedFiles;
  /** Tells of the writer. */
  readonly newsPort: MessagePort;
}

/**
 * Returns the store for a thread that takes records in. It looks things up with a connection of its own, so that an upload
 * goes to no other thread than the writer.
 */
export function attachSqliteStore({ files, newsPort }: SqliteStoreHandle): IngestStore {
  const writer: Link<AnsweredWrites> = createLink('writer');
  const hear = (news: ThreadNews): void => connect(writer, news);
  // What was told before the port got here can be read at once, so the store can be used at once.
  for (let first = receiveMessageOnPort(newsPort); first; first = receiveMessageOnPort(newsPort)) {
    hear(first.message as ThreadNews);
  }
  newsPort.on('message', hear);
  newsPort.unref();
  let opened: { readonly connection: ReadingConnection; readonly lookUps: LookUps } | null = null;

  const open = (): typeof opened & {} => {
    const connection = new ReadingConnection(files, LOOK_UP_CACHE_KIB);
    return { connection, lookUps: createLookUps(connection.database, catalogueTables) };
  };

  const lookUp = async <Result>(find: (lookUps: LookUps) => Result): Promise<Result> => {
    try {
      opened ??= open();
      const { connection, lookUps } = opened;
      return connection.read(() => find(lookUps));
    } catch (error) {
      throw asStoreError(error);
    }
  };

  return {
    existing: (...args) => lookUp((lookUps) => lookUps.existing(...args)),
    recall: (...args) => lookUp((lookUps) => lookUps.recall(...args)),
    ...writesThrough(writer),
    async close() {
      await writer.close();
      newsPort.close();
      opened?.connection.close();
    },
  };
}

function connect(link: Link<never>, news: ThreadNews): void {
  if ('port' in news) link.connect(news.port);
  else link.lose(news.lost);
}

function writesThrough(writer: Link<AnsweredWrites>): Pick<Store, 'write' | 'writeInteraction'> {
  return {
    write(upload) {
      const packed = packUpload(upload);
      const { buffer, byteLength } = packed.rows.bytes;
      return writer.call('write', [packed], {
        organisation: upload.organisation,
        bytes: byteLength + memoryBytes(packed.memory),
        handedOver: buffer,
      });
    },
    async writeInteraction({ organisation, row, memory: given }) {
      const rowJson = row === null ? null : JSON.stringify(row);
      const memory = packMemory(given);
      const options = { organisation, bytes: (rowJson?.length ?? 0) + memoryBytes(memory) };
      const written = await writer.call('writeInteraction', [organisation, rowJson, memory], options);
      return typeof written === 'string' ? { kind: 'written', tallies: [tallyOf(written)] } : written;
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
