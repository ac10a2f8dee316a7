// Finds out whose queries take the memory of the analytics process. DuckDB does not say that for what its memory limit
// does not include. So the process looks at its memory again and again, and at who has had a query running meanwhile.

/** A query can be the reason only if the process has grown by this much while it ran. Short queries never see that. */
const MUCH_BYTES = 256 * 1024 ** 2;
/** After its end, a query counts for this time, because its memory is not given back at once. */
const COUNTS_AFTER_END_MS = 3000;

interface Query {
  readonly orgId: string;
  /** The least memory that the process has used during the query. */
  leastBytes: number;
  /** Null while the query runs. */
  end: { readonly atMs: number; readonly usedBytes: number } | null;
}

export class MemoryTakers {
  readonly #usedBytes: () => number;
  readonly #queries = new Set<Query>();

  constructor(usedBytes: () => number) {
    this.#usedBytes = usedBytes;
  }

  /** Call this when a query begins. Returns a function to call when it has ended. */
  begin(orgId: string): () => void {
    const query: Query = { orgId, leastBytes: this.#usedBytes(), end: null };
    this.#queries.add(query);
    return () => {
      query.end = { atMs: performance.now(), usedBytes: this.#usedBytes() };
    };
  }

  /** Call this again and again. Returns how much memory the process uses. */
  look(): number {
    const usedBytes = this.#usedBytes();
    const countsSinceMs = performance.now() - COUNTS_AFTER_END_MS;
    for (const query of this.#queries) {
      if (query.end === null) query.leastBytes = Math.min(query.leastBytes, usedBytes);
      else if (query.end.atMs < countsSinceMs) this.#queries.delete(query);
    }
    return usedBytes;
  }

  /** Returns the organisations whose queries may have taken the memory. */
  takers(): ReadonlySet<string> {
    const usedBytes = this.#usedBytes();
    const takers = [...this.#queries].filter(
      ({ end, leastBytes }) => (end?.usedBytes ?? usedBytes) - leastBytes >= MUCH_BYTES,
    );
    return new Set(takers.map(({ orgId }) => orgId));
  }
}
