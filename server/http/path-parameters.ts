// Reads the {type} of a path.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import { isRecordTypeName, type RecordTypeName, recordTypeNames } from '@headgate/catalogue/record-types.ts';
import type { FastifyRequest } from 'fastify';
import { nearName } from '../near-name.ts';
import type { Refusal } from './refusals.ts';

export function recordTypeOf(request: FastifyRequest): RecordTypeName | Refusal {
  const { type } = request.params as { type: string };
  if (isRecordTypeName(type)) return type;
  const near = nearName(type, recordTypeNames);
  const hint = near === null ? '' : ` Did you mean ${near}?`;
  return {
    refusal: 'not_found',
    message: `There is no record type ${quote(type)}.${hint} The types are ${recordTypeNames.join(', ')}.`,
  };
}
