import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOrganisation, findOrganisation } from './organisations.ts';
import { temporaryStore } from './temporary-store.ts';

test('an organisation is found by its name, and by its id in upper or lower case', async (t) => {
  const { store, newOrganisation } = await temporaryStore(t);
  const acme = await newOrganisation();
  for (const wanted of ['acme', ' acme ', acme.orgId, acme.orgId.toUpperCase()]) {
    assert.deepEqual(await findOrganisation(store, wanted), { kind: 'found', organisation: acme }, wanted);
  }
});

test('an organisation that does not exist is reported as unknown, with a similar name', async (t) => {
  const { store, newOrganisation } = await temporaryStore(t);
  await newOrganisation();
  assert.deepEqual(await findOrganisation(store, 'acne'), { kind: 'unknown', near: 'acme' });
  assert.deepEqual(await findOrganisation(store, 'somebody else'), { kind: 'unknown', near: null });
  assert.deepEqual(await findOrganisation(store, 'ACME'), { kind: 'unknown', near: 'acme' });
});

test('a name is trimmed and normalised', async (t) => {
  const { store, newOrganisation } = await temporaryStore(t);
  await newOrganisation();
  const created = await createOrganisation(store, '  Cafe\u0301 Zürich ', 1000);
  assert.ok(created.kind === 'created');
  assert.equal(created.organisation.name, 'Café Zürich');
  assert.equal(created.organisation.createdAtMs, 1000);
  assert.equal((await findOrganisation(store, 'Café Zürich')).kind, 'found');
  assert.deepEqual(await createOrganisation(store, 'Café Zürich', 2000), {
    kind: 'taken',
    name: 'Café Zürich',
  });
});

test('a name that is empty, too long, ambiguous or not printable is refused', async (t) => {
  const { store, newOrganisation } = await temporaryStore(t);
  await newOrganisation();
  const refused: [text: string, reason: RegExp][] = [
    ['', /empty/],
    [' \t ', /empty/],
    ['a\nb', /^must not contain U\+000A/],
    ['a\u0000b', /^must not contain U\+0000/],
    ['a\u001b[31mb', /^must not contain U\+001B/],
    ['a\u2028b', /^must not contain U\+2028/],
    ['a\ud800', /^must not contain U\+D800/],
    ['acme\u200b', /^must not contain U\+200B, which is invisible/],
    ['\u202eemca', /^must not contain U\+202E/],
    ['a\u00adb', /^must not contain U\+00AD/],
    ['a\u{e0061}b', /^must not contain U\+E0061/],
    ['a\u3164b', /^must not contain U\+3164/],
    ['x'.repeat(101), /at most 100 characters, not 101/],
    ['6B29FC40-CA47-1067-B31D-00DD010662DA', /UUID/],
  ];
  for (const [text, reason] of refused) {
    const created = await createOrganisation(store, text, 0);
    assert.ok(created.kind === 'refused', JSON.stringify(text));
    assert.match(created.reason, reason);
  }
  assert.equal((await store.organisations()).length, 1);
  assert.equal((await createOrganisation(store, '🎓'.repeat(100), 0)).kind, 'created');
});
