// The reference graph: the types that each type refers to, and the resulting order of upload.

import { alternatives } from './alternatives.ts';
import type { Catalogue, Fields, Reference } from './declaration.ts';

export function referencedTypes(reference: Reference): readonly string[] {
  return typeof reference === 'string' ? [reference] : Object.values(reference.types);
}

/** Returns what a reference requires, for documentation. Returns '' for a field that is not a reference. */
export function requirementOf(reference: Reference | undefined): string {
  if (reference === undefined) return '';
  return `must be the id of an uploaded record of type ${alternatives(referencedTypes(reference))}`;
}

/** Returns the types that the fields refer to, without duplicates, in the order of the fields. */
export function dependenciesOf(fields: Fields): readonly string[] {
  const targets = Object.values(fields).flatMap((field) =>
    field.references === undefined ? [] : referencedTypes(field.references),
  );
  return [...new Set(targets)];
}

/**
 * Returns all types in the order of declaration, except that each type comes after the types that it refers to. Throws
 * an error if the references form a cycle.
 */
export function uploadOrder<C extends Catalogue>(types: C): readonly (keyof C & string)[] {
  const ordered = new Set<string>();
  const underway: string[] = [];
  const visit = (name: string): void => {
    if (ordered.has(name)) return;
    if (underway.includes(name)) {
      throw new Error(`the references ${[...underway, name].join(' → ')} go round in a circle`);
    }
    underway.push(name);
    for (const target of dependenciesOf(types[name]!.fields)) visit(target);
    underway.pop();
    ordered.add(name);
  };
  for (const name of Object.keys(types)) visit(name);
  return [...ordered];
}
