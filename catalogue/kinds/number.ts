import { Flaw, type JsonSchema, type Kind, quote, wrongType } from './kind.ts';

export interface Bounds {
  readonly min?: number;
  readonly max?: number;
  /** The value must be greater than this. */
  readonly above?: number;
}

export interface NumberKind extends Kind<number> {
  readonly bounds: Bounds;
}

/** Returns a kind that accepts finite double-precision numbers within the bounds. */
export function number(bounds: Bounds = {}): NumberKind {
  const accepts = describe(bounds);
  return {
    name: 'number',
    accepts,
    bounds,
    schema: schemaOf(bounds),
    check(value) {
      if (typeof value !== 'number') return wrongType('a number', value);
      if (!Number.isFinite(value)) {
        return new Flaw('out_of_range', 'must be a finite number that double precision can hold');
      }
      if (
        (bounds.min !== undefined && value < bounds.min) ||
        (bounds.max !== undefined && value > bounds.max) ||
        (bounds.above !== undefined && value <= bounds.above)
      ) {
        return new Flaw('out_of_range', `must be ${accepts}, not ${quote(value)}`);
      }
      return value;
    },
    present: (kept) => kept as number,
  };
}

function describe({ min, max, above }: Bounds): string {
  if (above !== undefined) return `a number greater than ${above}`;
  if (min !== undefined && max !== undefined) return `a number from ${min} to ${max}`;
  if (min !== undefined) return `a number of ${min} or more`;
  return max === undefined ? 'a number' : `a number of ${max} or less`;
}

function schemaOf({ min, max, above }: Bounds): JsonSchema {
  return {
    type: 'number',
    ...(min === undefined ? {} : { minimum: min }),
    ...(max === undefined ? {} : { maximum: max }),
    ...(above === undefined ? {} : { exclusiveMinimum: above }),
  };
}
