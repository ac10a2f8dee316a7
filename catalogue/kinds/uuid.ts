import { Flaw, type Kind, quote, wrongType } from './kind.ts';

const pattern = '^[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}$';
const anyCase = new RegExp(pattern);
/** Nearly every UUID comes in lower case already, and then one look is enough. */
const lowerCase = new RegExp(pattern.replaceAll('A-F', ''));

export const uuid: Kind<string> = {
  name: 'uuid',
  accepts: 'a UUID of the form 8-4-4-4-12 hexadecimal digits',
  schema: { type: 'string', format: 'uuid', pattern },
  check(value) {
    if (typeof value !== 'string') return wrongType('a UUID string', value);
    if (lowerCase.test(value)) return value;
    if (anyCase.test(value)) return value.toLowerCase();
    return new Flaw('invalid_format', `must be ${uuid.accepts}, not ${quote(value)}`);
  },
  present: (kept) => kept as string,
};
