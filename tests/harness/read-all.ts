// Reads back everything that an organisation has, page by page.

import type { Api, Reply } from './api.ts';

type Shown = Record<string, unknown>;

const PAGE_LIMIT = 1000;

export function readAllRecords(api: Api, type: string, filter = ''): Promise<Shown[]> {
  return readAll(
    (query) => api.list(type, query + filter),
    (body) => body.records,
  );
}

export function readAllInteractions(api: Api, filter = ''): Promise<Shown[]> {
  return readAll(
    (query) => api.interactions(query + filter),
    (body) => body.interactions,
  );
}

async function readAll<Body extends { readonly next_cursor: string | null }>(
  read: (query: string) => Promise<Reply<Body>>,
  itemsOf: (body: Body) => readonly Shown[],
): Promise<Shown[]> {
  const all: Shown[] = [];
  let cursor: string | null = null;
  do {
    const after: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const { status, body, text }: Reply<Body> = await read(`?limit=${PAGE_LIMIT}${after}`);
    if (status !== 200) throw new Error(`a page answered ${status}: ${text}`);
    all.push(...itemsOf(body));
    cursor = body.next_cursor;
  } while (cursor !== null);
  return all;
}
