// Reads the {type} of a path.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import {
  INTERACTIONS,
  isRecordTypeName,
  isUploadTypeName,
  type RecordTypeName,
  recordTypeNames,
  type UploadTypeName,
  uploadTypeNames,
} from '@headgate/catalogue/record-types.ts';
import type { FastifyRequest } from 'fastify';
import { nearName } from '../near-name.ts';
import type { Refusal } from './refusals.ts';

/** Returns the type of the records to read. */
export function recordTypeOf(request: FastifyRequest): RecordTypeName | Refusal {
  const { type } = request.params as { type: string };
  if (isRecordTypeName(type)) return type;
  if (type === INTERACTIONS || type === 'user-interactions') return interactionsElsewhere;
  return unknownType(type, recordTypeNames);
}

/** Returns the type of the records to upload. */
export function uploadTypeOf(request: FastifyRequest): UploadTypeName | Refusal {
  const { type } = request.params as { type: string };
  return isUploadTypeName(type) ? type : unknownType(type, uploadTypeNames);
}

const interactionsElsewhere: Refusal = {
  refusal: 'not_found',
  message: 'Interactions are read at GET /user-interactions.',
};

export function unknownType(type: string, types: readonly string[]): Refusal {
  const near = nearName(type, types);
  const hint = near === null ? '' : ` Did you mean ${near}?`;
  return {
    refusal: 'not_found',
    message: `There is no record type ${quote(type)}.${hint} The types are ${types.join(', ')}.`,
  };
}
