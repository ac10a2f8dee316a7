import { Flaw, type Kind, quote, wrongType } from './kind.ts';

export interface ChoiceKind<Value extends string> extends Kind<Value> {
  readonly values: readonly Value[];
}

/** Returns a kind that accepts the given words, in exactly this spelling. */
export function choice<const Value extends string>(...values: Value[]): ChoiceKind<Value> {
  const known: ReadonlySet<string> = new Set(values);
  const accepts = values.length === 1 ? `${values[0]}` : `one of ${values.join(', ')}`;
  return {
    name: 'choice',
    accepts,
    values,
    schema: { type: 'string', enum: values },
    check(value) {
      if (typeof value !== 'string') return wrongType(accepts, value);
      return known.has(value) ? value : new Flaw('not_allowed', `must be ${accepts}, not ${quote(value)}`);
    },
    present: (kept) => kept as Value,
  };
}
