// Checks that a file contains records of the expected type, by the names of its columns or of the fields of its first
// record.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { nearName } from '../../near-name.ts';
import { shown } from './display.ts';
import { fieldsOf, type LoadType, loadOrder } from './file-types.ts';

/** A message names at most this many columns for each problem, and gives the number of the others. */
const MOST_NAMED = 5;

/** Returns all problems of a CSV file's header, each as a sentence. */
export function headerProblems(
  names: readonly string[],
  type: LoadType,
  isLenient: boolean,
): readonly string[] {
  const fields = fieldsOf(type);
  const known = Object.keys(fields);
  const isKnown = (name: string): boolean => Object.hasOwn(fields, name);
  const present = new Set(names);
  const other = otherType(present, type);
  if (other !== null) return [`its columns are those of ${other}, not of ${type}${otherTypeRemedy(other)}`];
  const separator = names.length === 1 ? /[;\t|]/.exec(names[0]!)?.[0] : undefined;
  if (separator !== undefined) {
    return [`its columns are separated by ${quote(separator)}; save it with commas`];
  }
  const missing = known.filter((name) => fields[name]!.required && !present.has(name));
  const unknown = isLenient ? [] : [...present].filter((name) => name !== '' && !isKnown(name));
  const repeated = repeatedIn(names).filter((name) => name !== '');
  return [
    ...(present.has('') ? ['a column has no name'] : []),
    ...repeated.slice(0, MOST_NAMED).map((name) => `the column ${quote(name)} appears twice`),
    ...(repeated.length > MOST_NAMED ? [`so do ${shown(repeated.length - MOST_NAMED)} more`] : []),
    ...unknown.slice(0, MOST_NAMED).map((name) => {
      const near = nearName(name.trim(), known);
      return `${type} have no column ${quote(name)}${near === null ? '' : ` (did you mean ${near}?)`}`;
    }),
    ...(unknown.length > MOST_NAMED ? [`nor ${shown(unknown.length - MOST_NAMED)} more`] : []),
    ...(missing.length === 0 ? [] : [`missing required columns: ${missing.join(', ')}`]),
    ...(unknown.length === 0 ? [] : [`the columns of ${type} are ${known.join(', ')}`]),
  ];
}

/** Returns a list without duplicates of the names that occur more than once. */
function repeatedIn(names: readonly string[]): readonly string[] {
  const seen = new Set<string>();
  const repeated = new Set<string>();
  for (const name of names) (seen.has(name) ? repeated : seen).add(name);
  return [...repeated];
}

/** Returns a sentence if the record has the fields of another type, otherwise null. The server checks the rest. */
export function firstRecordProblem(record: unknown, type: LoadType): string | null {
  if (typeof record !== 'object' || record === null) return null;
  const other = otherType(new Set(Object.keys(record)), type);
  return other === null ? null : `its records are ${other}, not ${type}${otherTypeRemedy(other)}`;
}

function otherTypeRemedy(other: LoadType): string {
  return `; rename it so that its name begins with ${other}, or give --type ${other}`;
}

/**
 * Returns null if the names contain all required fields of the type. Otherwise returns a type that fits: it has all of
 * the names, and the names contain its required fields. Returns null if no type fits.
 */
function otherType(names: ReadonlySet<string>, type: LoadType): LoadType | null {
  const lacksRequired = (of: LoadType): boolean =>
    Object.entries(fieldsOf(of)).some(([name, { required }]) => required && !names.has(name));
  if (!lacksRequired(type)) return null;
  const fits = (of: LoadType): boolean =>
    !lacksRequired(of) && [...names].every((name) => Object.hasOwn(fieldsOf(of), name));
  return loadOrder.find(fits) ?? null;
}
