// The record types of the contract, field by field and reference by reference.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe, it } from 'node:test';
import { recordTypeNames } from '@headgate/catalogue/record-types.ts';
import { type Api, problemsOf, totals, type UploadBody } from './harness/api.ts';
import { describeOnceOn, forEachStore } from './harness/for-each-store.ts';
import type { TestRecord } from './harness/records.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import {
  badFormsOf,
  fullSpecRecord,
  goodFormsOf,
  type Parents,
  shownRecord,
  specFields,
  specKey,
  specNonReferences,
  specRecord,
  specReferenceOf,
  specReferences,
  specTypes,
  uploadParents,
} from './harness/spec.ts';

forEachStore((store) => {
  const running = runningHeadgate(store);
  let api: Api;
  let otherApi: Api;
  let parents: Parents;
  let otherParents: Parents;

  before(async () => {
    [api, otherApi] = await Promise.all([running.newApi(), running.newApi()]);
    [parents, otherParents] = await Promise.all([uploadParents(api), uploadParents(otherApi)]);
  });

  it('has the fourteen types of the contract and no other', () => {
    assert.equal(specTypes.length, 14);
    assert.deepEqual([...recordTypeNames].sort(), [...specTypes].sort());
  });

  for (const type of specTypes) {
    describe(`a record of ${type}`, () => {
      const fields = specFields(type);
      const key = specKey(type);

      it('is accepted with its required fields alone, and shows the others as null', async () => {
        const record = specRecord(type, parents);
        await assertAccepted(type, [record]);
        const { status, body } = await api.read(type, record[key] as string);
        assert.equal(status, 200);
        assert.deepEqual(body, shownRecord(type, record));
      });

      it('is accepted with every field, and reads back equal', async () => {
        const record = fullSpecRecord(type, parents);
        await assertAccepted(type, [record]);
        const { status, body } = await api.read(type, record[key] as string);
        assert.equal(status, 200);
        assert.deepEqual(body, record);
      });

      it('may omit each optional field, or set it to null, which means the same', async () => {
        const optional = fields.filter(({ required }) => !required).map(({ name }) => name);
        const records = optional.flatMap((name) => {
          const { [name]: _, ...without } = fullSpecRecord(type, parents);
          return [without, { ...fullSpecRecord(type, parents), [name]: null }];
        });
        await assertAccepted(type, records);
        for (const record of records) {
          const { body } = await api.read(type, record[key] as string);
          assert.deepEqual(body, shownRecord(type, record));
        }
      });

      for (const field of fields) {
        it(`accepts each good form of ${field.name}, and shows it in one canonical form`, async () => {
          const reference = specReferenceOf(type, field.name);
          const parent = reference && parents[reference.target]!;
          const forms = parent ? [{ sent: parent.toUpperCase(), shown: parent }] : goodFormsOf(field);
          const records = forms.map(({ sent }) => specRecord(type, parents, { [field.name]: sent }));
          await assertAccepted(type, records);
          for (const [at, record] of records.entries()) {
            const { body } = await api.read(type, record[key] as string);
            const wanted = shownRecord(type, { ...record, [field.name]: forms[at]!.shown });
            assert.deepEqual(body, wanted);
          }
        });
      }
    });

    describeOnceOn(store, `a bad record of ${type}`, () => {
      const fields = specFields(type);

      it('is refused without each required field, and with null in it', async () => {
        const required = fields.filter((field) => field.required).map(({ name }) => name);
        const cases = required.flatMap((name) => {
          const { [name]: _, ...without } = specRecord(type, parents);
          return [
            { record: without, field: name, code: 'required' },
            { record: { ...specRecord(type, parents), [name]: null }, field: name, code: 'required' },
          ];
        });
        await assertRefused(type, cases);
      });

      for (const field of fields) {
        it(`refuses each bad form of ${field.name} with its code`, async () => {
          await assertRefused(
            type,
            badFormsOf(field).map(({ sent, code }) => ({
              record: specRecord(type, parents, { [field.name]: sent }),
              field: field.name,
              code,
            })),
          );
        });

        if (field.holds.startsWith('number') || field.holds.endsWith('itude')) {
          it(`refuses a ${field.name} beyond double precision`, async () => {
            for (const literal of ['1e999', '-1e999']) {
              const record = JSON.stringify(specRecord(type, parents, { [field.name]: 'LITERAL' }));
              const { status, body } = await api.request<UploadBody>(`/v1/data/${type}`, {
                body: `{"records":[${record.replace('"LITERAL"', literal)}]}`,
              });
              assert.equal(status, 400);
              assert.deepEqual(
                problemsOf(body).map(({ field: name, code }) => ({ name, code })),
                [{ name: field.name, code: 'out_of_range' }],
              );
            }
          });
        }
      }

      it('is refused with a field that its type does not have', async () => {
        const strangers = ['colour', 'Name', 'constructor', `${specKey(type)} `, '', 'organisation'];
        if (!fields.some(({ name }) => name === 'region')) strangers.push('region');
        await assertRefused(
          type,
          strangers.map((name) => ({
            record: specRecord(type, parents, { [name]: 'GB' }),
            field: name,
            code: 'unknown_field',
          })),
        );
      });
    });
  }

  it('gives no region to courses, keywords, tags, shop-keywords, shop-tags and student-favourites', async () => {
    for (const type of ['courses', 'keywords', 'tags', 'shop-keywords', 'shop-tags', 'student-favourites']) {
      await assertRefused(type, [
        { record: specRecord(type, parents, { region: 'GB' }), field: 'region', code: 'unknown_field' },
      ]);
      const record = specRecord(type, parents);
      await assertAccepted(type, [record]);
      const { body } = await api.read(type, record[specKey(type)] as string);
      assert.ok(!('region' in body), `${type} shows a region`);
    }
  });

  for (const { type, field, target } of specReferences) {
    describe(`the ${field} of ${type}`, () => {
      it(`is accepted if it names one of ${target}, and stored`, async () => {
        const record = specRecord(type, parents);
        assert.equal(record[field], parents[target]);
        await assertAccepted(type, [record]);
        const { body } = await api.read(type, record[specKey(type)] as string);
        assert.equal(body[field], parents[target]);
      });

      it(`is refused if it names none of ${target}, and accepted once that was uploaded`, async () => {
        const id = randomUUID();
        const record = specRecord(type, parents, { [field]: id });
        await assertRefused(type, [{ record, field, code: 'unknown_reference' }]);
        await assertAccepted(target, [specRecord(target, parents, { [specKey(target)]: id })]);
        await assertAccepted(type, [record]);
      });

      it('is refused if only another organisation has the record', async () => {
        const record = specRecord(type, parents, { [field]: otherParents[target] });
        await assertRefused(type, [{ record, field, code: 'unknown_reference' }]);
      });

      it('is refused if a record of another type has the id', async () => {
        const records = Object.entries(parents)
          .filter(([other]) => other !== target)
          .map(([, id]) => specRecord(type, parents, { [field]: id }));
        await assertRefused(
          type,
          records.map((record) => ({ record, field, code: 'unknown_reference' })),
        );
      });

      it(`is satisfied by one of ${target} that is marked as deleted`, async () => {
        const id = randomUUID();
        const parent = specRecord(target, parents, { [specKey(target)]: id, is_deleted: true });
        await assertAccepted(target, [parent]);
        await assertAccepted(type, [specRecord(type, parents, { [field]: id })]);
      });

      it(`stays satisfied when its ${target} record is marked as deleted later`, async () => {
        const parent = specRecord(target, parents);
        const id = parent[specKey(target)];
        await assertAccepted(target, [parent]);
        await assertAccepted(target, [{ ...parent, is_deleted: true }]);
        await assertAccepted(type, [specRecord(type, parents, { [field]: id })]);
      });
    });
  }

  it('reports every unknown reference of a record', async () => {
    for (const type of new Set(specReferences.map((reference) => reference.type))) {
      const names = specReferences.filter((reference) => reference.type === type).map(({ field }) => field);
      const strays = Object.fromEntries(names.map((name) => [name, randomUUID()]));
      const { status, body } = await api.upload(type, [specRecord(type, parents, strays)]);
      assert.equal(status, 400);
      assert.deepEqual(
        problemsOf(body).map(({ field, code }) => ({ field, code })),
        names.map((field) => ({ field, code: 'unknown_reference' })),
      );
    }
  });

  for (const { type, field } of specNonReferences) {
    it(`stores the ${field} of ${type} as given, whether or not it names anything`, async () => {
      const value = field === 'allowed_branches' ? `${randomUUID()},nowhere` : randomUUID();
      const record = specRecord(type, parents, { [field]: value });
      await assertAccepted(type, [record]);
      const { body } = await api.read(type, record[specKey(type)] as string);
      assert.equal(body[field], value);
    });
  }

  async function assertAccepted(type: string, records: readonly TestRecord[]): Promise<void> {
    const { status, body, text } = await api.upload(type, records);
    assert.equal(status, 200, text.slice(0, 2000));
    assert.equal(totals(body).rejected, 0);
  }

  /** Fails unless each record is refused for exactly this one reason and is not stored. */
  async function assertRefused(
    type: string,
    cases: readonly { readonly record: TestRecord; readonly field: string; readonly code: string }[],
  ): Promise<void> {
    const { status, body } = await api.upload(
      type,
      cases.map(({ record }) => record),
    );
    assert.deepEqual(
      problemsOf(body).map(({ index, field, code }) => ({ index, field, code })),
      cases.map(({ field, code }, index) => ({ index, field, code })),
    );
    assert.equal(status, 400);
    assert.deepEqual(totals(body), {
      received: cases.length,
      created: 0,
      updated: 0,
      unchanged: 0,
      rejected: cases.length,
    });
    const ids = cases.map(({ record }) => String(record[specKey(type)]));
    const replies = await Promise.all(ids.map((id) => api.read(type, encodeURIComponent(id))));
    assert.deepEqual(
      replies.map((reply) => reply.status),
      ids.map(() => 404),
    );
  }
});
