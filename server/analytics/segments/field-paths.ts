// The fields that a condition can test: those of a type, and those of the records it refers to. They are derived from
// the catalogue.

import type { Fields } from '@headgate/catalogue/declaration.ts';
import type { Kind } from '@headgate/catalogue/kinds/kind.ts';
import {
  INTERACTIONS,
  type RecordTypeName,
  recordTypeNames,
  recordTypes,
  storedInteraction,
  type UploadTypeName,
} from '@headgate/catalogue/record-types.ts';

/** What a customer can have done: the field that refers to the customer, and the field with the time. */
export const events = {
  transactions: { customer: 'student_id', time: 'created' },
  interactions: { customer: 'student_id', time: 'occurred_at' },
  'student-favourites': { customer: 'student_id', time: 'created' },
} as const satisfies Partial<Record<UploadTypeName, { readonly customer: string; readonly time: string }>>;

export type EventType = keyof typeof events;
export const eventTypes = Object.keys(events) as readonly EventType[];

/** Leads from a row to the rows of another type whose `toField` has the same value as the row's `field`. */
export interface Step {
  readonly field: string;
  /** The step exists only for rows with this value in another field. */
  readonly onlyIf: { readonly field: string; readonly value: string } | null;
  readonly to: RecordTypeName;
  readonly toField: string;
}

export interface FieldPath {
  /** The path as it is written, such as `shop.name`. */
  readonly text: string;
  readonly from: UploadTypeName;
  readonly steps: readonly Step[];
  /** A field of the type to which the last step leads. */
  readonly field: string;
  readonly kind: Kind;
  /** Whether a row can have several values. */
  readonly isMany: boolean;
}

interface Relation {
  readonly name: string;
  readonly steps: readonly Step[];
  readonly to: RecordTypeName;
  /** Whether another type links the two. A record can then have several of the others. */
  readonly isLink: boolean;
}

export function fieldsOf(type: UploadTypeName): Fields {
  return type === INTERACTIONS ? storedInteraction : recordTypes[type].fields;
}

/** Returns all paths from a type, by their text. */
function pathsFrom(type: UploadTypeName): ReadonlyMap<string, FieldPath> {
  const paths = new Map<string, FieldPath>();
  const addFields = (
    current: UploadTypeName,
    prefix: string,
    steps: readonly Step[],
    isMany: boolean,
  ): void => {
    for (const [field, { kind }] of Object.entries(fieldsOf(current))) {
      if (isHidden(field, kind)) continue;
      const text = joined(prefix, field);
      paths.set(text, { text, from: type, steps, field, kind, isMany });
    }
    for (const relation of [...references(current), ...links(current)]) {
      const text = joined(prefix, relation.name);
      addFields(relation.to, text, [...steps, ...relation.steps], isMany || relation.isLink);
      // A link means the name of the linked record: `shop.tag` is the same as `shop.tag.name`.
      const name = paths.get(`${text}.name`);
      if (relation.isLink && name !== undefined) paths.set(text, { ...name, text });
    }
  };
  addFields(type, '', [], false);
  return paths;
}

/**
 * Returns whether conditions cannot use the field. Deleted records are never considered. The text of an event timestamp
 * has several forms that cannot be compared; `occurred_at` has the same time.
 */
function isHidden(field: string, kind: Kind): boolean {
  return field === 'is_deleted' || kind.name === 'event-timestamp';
}

function joined(prefix: string, name: string): string {
  return prefix === '' ? name : `${prefix}.${name}`;
}

/** Returns the relations from a type to the types that its fields refer to. */
function references(type: UploadTypeName): readonly Relation[] {
  const relations: Relation[] = [];
  const add = (name: string, step: Step): number =>
    relations.push({ name, steps: [step], to: step.to, isLink: false });
  for (const [field, { references }] of Object.entries(fieldsOf(type))) {
    if (isEventType(type) && events[type].customer === field) continue;
    if (typeof references === 'object') {
      for (const [value, target] of Object.entries(references.types)) {
        const to = target as RecordTypeName;
        const { key } = recordTypes[to];
        add(nameOf(key), { field, onlyIf: { field: references.by, value }, to, toField: key });
      }
    } else {
      const to = (references as RecordTypeName | undefined) ?? typeWithKey(type, field);
      if (to !== null) add(nameOf(field), { field, onlyIf: null, to, toField: recordTypes[to].key });
    }
  }
  return relations;
}

/** Returns the type that a field without a declared reference refers to, because the field is named after its key. */
function typeWithKey(type: UploadTypeName, field: string): RecordTypeName | null {
  return recordTypeNames.find((other) => other !== type && recordTypes[other].key === field) ?? null;
}

/**
 * Returns the relations through types that only link two others, such as `shop-tags`. They lead from the first type
 * that is referred to, to the second.
 */
function links(type: UploadTypeName): readonly Relation[] {
  return recordTypeNames.flatMap((link) => {
    if (isEventType(link)) return [];
    const declared = Object.entries(recordTypes[link].fields as Fields).filter(
      ([, { references }]) => typeof references === 'string',
    );
    const [first, second] = declared;
    if (declared.length !== 2 || first![1].references !== type) return [];
    const to = second![1].references as RecordTypeName;
    return {
      name: nameOf(second![0]),
      steps: [
        { field: recordTypes[type as RecordTypeName].key, onlyIf: null, to: link, toField: first![0] },
        { field: second![0], onlyIf: null, to, toField: recordTypes[to].key },
      ],
      to,
      isLink: true,
    };
  });
}

function nameOf(reference: string): string {
  return reference.replace(/_id$/, '');
}

export function isEventType(name: string): name is EventType {
  return Object.hasOwn(events, name);
}

/** The paths from the customer, and from everything that a customer can have done. */
export const fieldPaths: Readonly<Record<EventType | 'customers', ReadonlyMap<string, FieldPath>>> = {
  customers: pathsFrom('customers'),
  transactions: pathsFrom('transactions'),
  interactions: pathsFrom('interactions'),
  'student-favourites': pathsFrom('student-favourites'),
};
