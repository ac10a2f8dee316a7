import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { test } from 'node:test';
import { AddressLines } from './address-lines.ts';

function linesOf(...addresses: readonly string[]) {
  const lines = new AddressLines<Socket>();
  const connections = addresses.map((remoteAddress) => ({ remoteAddress }) as Socket);
  for (const connection of connections) lines.add(connection);
  const next = (count: number): number[] =>
    lines.next(count).map((connection) => connections.indexOf(connection));
  return { lines, connections, next };
}

test('addresses take turns, and the connections of each are in a line', () => {
  const { lines, connections, next } = linesOf('10.0.0.1', '10.0.0.1', '10.0.0.1', '10.0.0.2');
  assert.deepEqual(next(3), [0, 3, 1]);
  assert.ok(lines.delete(connections[3]!));
  assert.ok(!lines.delete(connections[3]!));
  assert.deepEqual([lines.size, lines.has(connections[3]!), lines.has(connections[2]!)], [3, false, true]);
  assert.deepEqual(next(4), [2, 0, 1]);
});

test('the addresses of one IPv6 network are one', () => {
  const { next } = linesOf('2001:db8:1:2::1', '2001:db8:1:2:ffff::2', '2001:db8:1:3::1');
  assert.deepEqual(next(2), [0, 2]);
});
