// `headgate keys …`: issues, lists, rotates and revokes API keys.

import { quote } from '@headgate/catalogue/kinds/kind.ts';
import {
  type IssuedKey,
  isKeyId,
  issueKey,
  parseKey,
  revokeKey,
  rotateKey,
  statusOf,
} from '../access/keys.ts';
import { parseName } from '../access/names.ts';
import { parseScopes } from '../access/scopes.ts';
import { Failure } from '../failure.ts';
import { durationForm, parseDurationMs } from '../settings.ts';
import type { ApiKey } from '../store/keys.ts';
import type { Call } from './call.ts';
import { columns } from './columns.ts';
import { type ExitCode, exitCodes, failed, type Io, isoOrNull, misused, printJson } from './io.ts';
import { namedOrganisation } from './orgs.ts';
import { withStore } from './with-store.ts';

const DEFAULT_OVERLAP = '24h';
const LONGEST_DAYS = 36_500;

export async function issue(call: Call): Promise<ExitCode> {
  const { io, option, optionAll } = call;
  const scopes = parseScopes(optionAll('scope'));
  if (scopes instanceof Failure) return misused(io, scopes);
  const expires = option('expires');
  const lifetimeMs = expires === undefined ? null : durationOption('expires', expires);
  if (lifetimeMs instanceof Failure) return misused(io, lifetimeMs);
  if (lifetimeMs === 0) return misused(io, '--expires must be longer than 0');
  const label = option('name');
  const name = label === undefined ? null : parseName(label);
  if (name instanceof Failure) return misused(io, `--name ${name.reason}`);

  return withStore(call, async (store) => {
    const found = await namedOrganisation(io, store, option('org')!);
    if (typeof found === 'number') return found;
    const nowMs = io.nowMs();
    const issued = await issueKey(store, {
      organisation: found.organisation,
      orgId: found.orgId,
      scopes,
      name,
      expiresAtMs: lifetimeMs === null ? null : nowMs + lifetimeMs,
      nowMs,
    });
    return showIssued(call, issued, `Issued a key to "${found.name}":`, []);
  });
}

export async function listKeys(call: Call): Promise<ExitCode> {
  const { io, option, isOn } = call;
  return withStore(call, async (store) => {
    const found = await namedOrganisation(io, store, option('org')!);
    if (typeof found === 'number') return found;
    const keys = await store.keysOf(found.organisation);
    const nowMs = io.nowMs();
    if (isOn('json')) {
      return printJson(
        io,
        keys.map((key) => ({
          key_id: key.keyId,
          org_id: key.orgId,
          name: key.name,
          scopes: key.scopes,
          created_at: isoOrNull(key.createdAtMs),
          expires_at: isoOrNull(key.expiresAtMs),
          revoked_at: isoOrNull(key.revokedAtMs),
          last_used_at: isoOrNull(key.lastUsedAtMs),
          replaced_by: key.replacedBy,
          status: statusOf(key, nowMs),
        })),
      );
    }
    if (keys.length === 0) {
      io.out(`"${found.name}" has no key yet. Issue one: headgate keys issue --org ${found.orgId}`);
      return exitCodes.done;
    }
    const rows = keys.map((key) => [
      key.keyId,
      statusOf(key, nowMs),
      key.name ?? '-',
      isoOrNull(key.createdAtMs)!,
      isoOrNull(key.expiresAtMs) ?? 'never',
      isoOrNull(key.lastUsedAtMs) ?? 'never',
      key.scopes.join(' '),
    ]);
    const heading = ['KEY ID', 'STATUS', 'NAME', 'CREATED', 'EXPIRES', 'LAST USED', 'SCOPES'];
    for (const line of columns([heading, ...rows])) io.out(line);
    return exitCodes.done;
  });
}

export async function rotate(call: Call): Promise<ExitCode> {
  const { io, args, option } = call;
  const keyId = keyIdFrom(args[0]!);
  if (keyId instanceof Failure) return misused(io, keyId);
  const overlapMs = durationOption('overlap', option('overlap') ?? DEFAULT_OVERLAP);
  if (overlapMs instanceof Failure) return misused(io, overlapMs);

  return withStore(call, async (store) => {
    const nowMs = io.nowMs();
    const rotated = await rotateKey(store, keyId, overlapMs, nowMs);
    if (rotated.kind === 'unknown') return noSuchKey(io, keyId);
    if (rotated.kind === 'replaced') {
      return failed(
        io,
        `the key ${keyId} was already rotated; rotate its successor ${rotated.successorId} instead, ` +
          `or end the old key at once: headgate keys revoke ${keyId}`,
      );
    }
    if (rotated.kind !== 'rotated') {
      return failed(
        io,
        `the key ${keyId} is ${rotated.kind}, so it cannot be rotated; issue a new one: headgate keys issue`,
      );
    }
    const { oldEndsAtMs } = rotated;
    const oldEnd =
      oldEndsAtMs <= nowMs ? 'has ended' : `works until ${isoOrNull(oldEndsAtMs)}, then use only this one`;
    return showIssued(call, rotated, `Issued a successor to the key ${keyId}:`, [`The old key ${oldEnd}.`]);
  });
}

export async function revoke(call: Call): Promise<ExitCode> {
  const { io, args, isOn } = call;
  const keyId = keyIdFrom(args[0]!);
  if (keyId instanceof Failure) return misused(io, keyId);
  return withStore(call, async (store) => {
    const revoked = await revokeKey(store, keyId, io.nowMs());
    if (revoked.kind === 'unknown') return noSuchKey(io, keyId);
    const revokedAt = isoOrNull(revoked.revokedAtMs);
    if (isOn('json')) {
      return printJson(io, { key_id: keyId, org_id: revoked.key.orgId, revoked_at: revokedAt });
    }
    io.out(
      revoked.kind === 'already'
        ? `The key ${keyId} was already revoked, at ${revokedAt}.`
        : `Revoked the key ${keyId}. Servers refuse it within 5 seconds.`,
    );
    return exitCodes.done;
  });
}

function showIssued({ io, isOn }: Call, issued: IssuedKey, heading: string, more: string[]): ExitCode {
  const { apiKey, key } = issued;
  if (isOn('json')) {
    return printJson(io, {
      key_id: key.keyId,
      key: apiKey,
      org_id: key.orgId,
      name: key.name,
      scopes: key.scopes,
      expires_at: isoOrNull(key.expiresAtMs),
    });
  }
  io.out(heading);
  io.out('');
  io.out(`  ${apiKey}`);
  io.out('');
  io.out('Save it now: it will not be shown again.');
  for (const line of more) io.out(line);
  io.out('');
  for (const line of columns(factsOf(key))) io.out(line);
  return exitCodes.done;
}

function factsOf(key: ApiKey): string[][] {
  return [
    ['Key id', key.keyId],
    ['Name', key.name ?? '-'],
    ['Scopes', key.scopes.join(' ')],
    ['Expires', isoOrNull(key.expiresAtMs) ?? 'never'],
  ];
}

/** Returns the id of a key. Also accepts a whole key, because somebody who revokes a leaked key is in a hurry. */
function keyIdFrom(text: string): string | Failure {
  const keyId = parseKey(text)?.keyId ?? text.trim();
  if (isKeyId(keyId)) return keyId;
  // A text longer than an id may be a mistyped key. Only its length is shown, so that no secret reaches the terminal.
  const shown = text.length <= 12 ? quote(text) : `${text.length} characters`;
  return new Failure(
    `KEY_ID must be 12 lower-case hexadecimal digits, as headgate keys list shows, not ${shown}`,
  );
}

function noSuchKey(io: Io, keyId: string): ExitCode {
  return failed(io, `there is no key ${keyId}; headgate keys list --org NAME shows an organisation's keys`);
}

function durationOption(name: string, text: string): number | Failure {
  const durationMs = parseDurationMs(text);
  if (durationMs !== null && durationMs <= LONGEST_DAYS * 86_400_000) return durationMs;
  return new Failure(`--${name} must be ${durationForm}, of at most ${LONGEST_DAYS}d, not ${quote(text)}`);
}
