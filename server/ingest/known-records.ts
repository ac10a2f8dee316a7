// Which referenced records exist. A record that was seen to exist exists forever, so what is found once is
// never asked for again; what is not found always is.

import type { RecordTypeName } from '@headgate/catalogue/record-types.ts';
import type { OrganisationNumber } from '../store/rows.ts';
import type { IngestStore } from '../store/store.ts';

/** Half of what is remembered at most; an id and its place in a set take about 100 bytes. */
const GENERATION_LIMIT_IDS = 250_000;

type Generation = Map<string, Set<string>>;

export class KnownRecords {
  readonly #store: Pick<IngestStore, 'existing'>;
  // Two generations make a bounded memory without bookkeeping per id: what is used moves to the young one,
  // and when that is full the old one is dropped.
  #young: Generation = new Map();
  #old: Generation = new Map();
  #youngIds = 0;

  constructor(store: Pick<IngestStore, 'existing'>) {
    this.#store = store;
  }

  /** Those of the ids that are no records of the type. */
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
