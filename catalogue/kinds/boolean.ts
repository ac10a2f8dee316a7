import { type Kind, wrongType } from './kind.ts';

export const boolean: Kind<boolean> = {
  name: 'boolean',
  accepts: 'true or false',
  schema: { type: 'boolean' },
  check: (value) => (typeof value === 'boolean' ? value : wrongType('true or false', value)),
  present: (kept) => kept as boolean,
};
