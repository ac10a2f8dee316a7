// Finds out which of the referenced records exist, and caches the ids of those that do. Records are never removed, so a
// cached id stays valid. Ids without a record are not cached, because the record may be uploaded at any time.

import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import type { IngestStore } from '../store/store.ts';

/** The most ids in one of the two generations. Each id, with its entry in a set, takes about 100 bytes of memory. */
const GENERATION_LIMIT_IDS = 250_000;

type Generation = Map<string, Set<string>>;

export class KnownRecords {
  readonly #store: Pick<IngestStore, 'existing'>;
  // The cache has two generations, which limits its memory without bookkeeping per id. An id that is used moves to the
  // young generation. When the young generation is full, it becomes the old one, and the previous old one is discarded.
  #young: Generation = new Map();
  #old: Generation = new Map();
  #youngIds = 0;

  constructor(store: Pick<IngestStore, 'existing'>) {
    this.#store = store;
  }

  /** Resolves to the ids for which no record of the type exists. */
  async missing(
    organisation: OrganisationNumber,
    type: RecordTypeName,
    ids: ReadonlySet<string>,
  ): Promise<ReadonlySet<string>> {
    const place = `${organisation}/${type}`;
    const young = this.#young.get(place);
    const unsure = [];
    for (const id of ids) {
      if (young?.has(id)) continue;
      if (this.#old.get(place)?.has(id)) this.#remember(place, id);
      else unsure.push(id);
    }
    if (unsure.length === 0) return new Set();
    const found = await this.#store.existing(organisation, type, unsure);
    for (const id of found) this.#remember(place, id);
    return new Set(unsure.filter((id) => !found.has(id)));
  }

  #remember(place: string, id: string): void {
    if (this.#youngIds >= GENERATION_LIMIT_IDS) {
      this.#old = this.#young;
      this.#young = new Map();
      this.#youngIds = 0;
    }
    const ids = this.#young.get(place) ?? new Set();
    ids.add(id);
    this.#young.set(place, ids);
    this.#youngIds++;
  }
}
