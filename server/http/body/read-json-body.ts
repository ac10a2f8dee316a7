// Reads the body of a small request, such as a query or a condition, as a JSON object.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import type { FastifyRequest } from 'fastify';
import { Failure } from '../../failure.ts';
import { type JsonLimits, readJson } from '../../ingest/json.ts';
import { nearName } from '../../near-name.ts';
import { epochMs } from '../../observe/epoch-ms.ts';
import type { AppDependencies } from '../app-dependencies.ts';
import { isRefusal, type Refusal } from '../refusals.ts';
import { noteBody } from '../request-observation.ts';
import { bodyEncoding, readBytes } from './read-body.ts';

const LARGEST_BODY_BYTES = 512 * 1024;
/**
 * Many different keys are slow to parse, and no query or condition needs many. But a condition may have lists with as many
 * numbers as fit into its 65,536 characters.
 */
const limits: JsonLimits = { containers: 1000, keys: 1000, members: 33_000, advice: 'send fewer' };

type Fields<Name extends string> = { readonly [N in Name]?: unknown };

/** Resolves to the fields of the body, or to null if the connection was closed meanwhile. */
export async function readJsonBody<const Name extends string>(
  { inFlight, observer }: AppDependencies,
  request: FastifyRequest,
  names: readonly Name[],
): Promise<Fields<Name> | Refusal | null> {
  const encoding = bodyEncoding(request.raw);
  if (isRefusal(encoding)) return encoding;
  if (encoding !== null) return compressed;
  const { organisation } = request.caller!;
  const readAtMs = observer.traces === null ? 0 : epochMs();
  const bytes = await readBytes(request.raw, LARGEST_BODY_BYTES, inFlight, organisation);
  if (bytes === null || isRefusal(bytes)) return bytes;
  noteBody(request, bytes.byteLength, readAtMs);
  inFlight.give(organisation, bytes.byteLength);
  inFlight.turns.responseMade(organisation, bytes.byteLength);
  return parseFields(bytes, names);
}

const compressed: Refusal = {
  refusal: 'unsupported_media_type',
  message: 'Send the body without compression.',
};

function parseFields<const Name extends string>(
  bytes: Uint8Array,
  names: readonly Name[],
): Fields<Name> | Refusal {
  const read = readJson(bytes, limits);
  if (read instanceof Failure) return badBody(read.reason);
  const sent = read.value;
  if (typeof sent !== 'object' || sent === null || Array.isArray(sent)) {
    return badBody(`The body must be a JSON object with ${names.join(' and ')}.`);
  }
  const unknown = Object.keys(sent).find((name) => !(names as readonly string[]).includes(name));
  if (unknown === undefined) return sent as Fields<Name>;
  const near = nearName(unknown, names);
  const hint = near === null ? `the body takes ${names.join(' and ')}.` : `did you mean ${near}?`;
  return badBody(`The field ${quote(unknown)} is not known; ${hint}`);
}

export function badBody(message: string): Refusal {
  return { refusal: 'bad_request', message };
}
