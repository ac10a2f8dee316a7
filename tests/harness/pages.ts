// Reads a list page by page and keeps the pages separate, for tests of the pages themselves.

import type { Api, Reply } from './api.ts';

type Shown = Record<string, unknown>;

export function pagesOfRecords(api: Api, type: string, query: string): Promise<Shown[][]> {
  return walk(
    (cursor) => api.list(type, query + cursor),
    (body) => body.records,
  );
}

export function pagesOfInteractions(api: Api, query: string): Promise<Shown[][]> {
  return walk(
    (cursor) => api.interactions(query + cursor),
    (body) => body.interactions,
  );
}

async function walk<Body extends { readonly next_cursor: string | null }>(
  read: (cursor: string) => Promise<Reply<Body>>,
  itemsOf: (body: Body) => readonly Shown[],
): Promise<Shown[][]> {
  const pages: Shown[][] = [];
  for (let cursor = ''; ; ) {
    const { status, body, text } = await read(cursor);
    if (status !== 200) throw new Error(`page ${pages.length + 1} answered ${status}: ${text}`);
    pages.push([...itemsOf(body)]);
    if (body.next_cursor === null) return pages;
    cursor = `&cursor=${encodeURIComponent(body.next_cursor)}`;
  }
}

/** Returns the sizes of the pages of a list with `count` items: every page but the last is full, none is empty. */
export function pageSizes(count: number, limit: number): number[] {
  const full = Array.from({ length: Math.ceil(count / limit) }, () => limit);
  return full.map((size, at) => Math.min(size, count - at * limit));
}
