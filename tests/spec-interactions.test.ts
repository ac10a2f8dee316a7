// Interactions: which may be recorded, the refusals, and how they are read.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { before, describe, it } from 'node:test';
import { interaction } from '@headgate/catalogue/record-types.ts';
import type { Api, RefusalBody, Reply } from './harness/api.ts';
import { forEachStore } from './harness/for-each-store.ts';
import {
  fullInteraction,
  type Items,
  itemKinds,
  leastInteraction,
  uploadItems,
} from './harness/interactions.ts';
import { pageSizes, pagesOfInteractions } from './harness/pages.ts';
import type { TestRecord } from './harness/records.ts';
import { assertRefusal } from './harness/refusal.ts';
import { runningHeadgate } from './harness/running-headgate.ts';
import { badFormsOf, goodFormsOf, type Holds, specKey, specRecord } from './harness/spec.ts';

const uuidV7Form = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** The fields that hold one of a list of words. */
const choices: Readonly<Record<string, readonly string[]>> = {
  interaction_type: ['FILTER_CLICK', 'SHARE', 'PAGE_VIEW', 'DISCOUNT_CODE'],
  item_type: ['TAG', 'OFFER', 'SHOP', 'KEYWORD'],
  platform: ['ANDROID', 'IOS', 'WEB', 'OTHER'],
  source: ['SERVICE'],
};
const required = ['interaction_type', 'item_type', 'item_id', 'event_timestamp'];
const optional = ['user_id', 'student_id', 'city', 'country', 'platform', 'source', 'recommendation_id'];
const texts = ['user_id', 'city', 'country'];
const uuids = ['student_id', 'item_id', 'recommendation_id'];

forEachStore((store) => {
  const running = runningHeadgate(store);
  let api: Api;
  let items: Items;
  let otherItems: Items;

  before(async () => {
    const [own, other] = await Promise.all([running.newApi(), running.newApi()]);
    api = own;
    [items, otherItems] = await Promise.all([uploadItems(own), uploadItems(other)]);
  });

  const recorded = async (sent: TestRecord): Promise<Record<string, unknown>> => {
    const { status, body, text } = await api.record(sent);
    assert.equal(status, 201, text);
    return body;
  };

  /** Fails unless it was refused for exactly these reasons, in the shape of every refusal with details. */
  const assertNotRecorded = (
    { status, body, headers }: Reply<RefusalBody>,
    problems: readonly { readonly field: string | null; readonly code: string }[],
  ): void => {
    assert.equal(status, 400, JSON.stringify(body));
    assert.deepEqual(Object.keys(body).sort(), ['details', 'error', 'message', 'request_id']);
    assert.equal(body.error, 'Bad Request');
    assert.equal(headers.get('x-request-id'), body.request_id);
    assert.deepEqual(
      body.details!.map(({ field, code }) => ({ field, code })),
      problems,
    );
    for (const detail of body.details!) {
      assert.deepEqual(Object.keys(detail).sort(), ['code', 'field', 'message']);
      if (detail.field !== null) assert.ok(detail.message.startsWith(detail.field));
    }
    assert.ok(body.message.includes(body.details![0]!.message));
  };
  const assertRefused = async (sent: TestRecord, field: string, code: string): Promise<void> =>
    assertNotRecorded(await api.record<RefusalBody>(sent), [{ field, code }]);

  it('has the fields of the contract and no other', () => {
    assert.deepEqual(Object.keys(interaction).sort(), [...required, ...optional].sort());
  });

  describe('the response', () => {
    it('is 201 with every field of the request, those left out being null', async () => {
      const sent = leastInteraction(items);
      const startedMs = Date.now();
      const body = await recorded(sent);
      const endedMs = Date.now();
      const { interaction_id, created } = body;
      assert.match(interaction_id as string, uuidV7Form);
      assert.match(created as string, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
      const createdMs = Date.parse(created as string);
      assert.ok(startedMs <= createdMs && createdMs <= endedMs);
      assert.deepEqual(body, {
        ...Object.fromEntries(optional.map((name) => [name, null])),
        ...sent,
        interaction_id,
        occurred_at: '2024-05-01T09:30:00Z',
        created,
      });
    });

    it('is 201 with every field as it was sent, and reads back equal', async () => {
      const sent = fullInteraction(items);
      const body = await recorded(sent);
      const { interaction_id, occurred_at, created, ...rest } = body;
      assert.deepEqual(rest, sent);
      const { status, body: found } = await api.request<TestRecord>(`/user-interactions/${interaction_id}`);
      assert.equal(status, 200);
      assert.deepEqual(found, body);
    });

    it('has a new interaction id every time, also for the same interaction', async () => {
      const sent = leastInteraction(items);
      const ids = await Promise.all(
        Array.from({ length: 20 }, async () => (await recorded(sent)).interaction_id),
      );
      assert.equal(new Set(ids).size, 20);
    });

    it('names every problem at once', async () => {
      const sent = {
        ...leastInteraction(items),
        interaction_type: 'CLICK',
        platform: 7,
        item_id: 'seven',
        colour: 'red',
        event_timestamp: null,
      };
      assertNotRecorded(await api.record<RefusalBody>(sent), [
        { field: 'interaction_type', code: 'not_allowed' },
        { field: 'item_id', code: 'invalid_format' },
        { field: 'platform', code: 'wrong_type' },
        { field: 'event_timestamp', code: 'required' },
        { field: 'colour', code: 'unknown_field' },
      ]);
    });

    it('suggests a similar name, or the request that takes the field', async () => {
      const messageFor = async (field: string): Promise<string> => {
        const { status, body } = await api.record<RefusalBody>(leastInteraction(items, { [field]: 'x' }));
        assert.equal(status, 400);
        return body.message;
      };
      const start = 'The interaction was not recorded:';
      assert.equal(
        await messageFor('platfrom'),
        `${start} platfrom is not a field of this type; did you mean platform?`,
      );
      assert.equal(await messageFor('colour'), `${start} colour is not a field of this type.`);
      for (const field of ['interaction_id', 'created']) {
        assert.equal(
          await messageFor(field),
          `${start} ${field} is not a field of this type; only POST /v1/data/interactions takes it.`,
        );
      }
    });

    it('is 400 for a body that is not an object', async () => {
      for (const body of ['null', '7', '"PAGE_VIEW"', 'true', '[]', '[{}]']) {
        const reply = await api.request<RefusalBody>('/user-interactions', { body });
        assertNotRecorded(reply, [{ field: null, code: 'not_an_object' }]);
      }
    });

    it('is 400 for an interaction wrapped in "records"', async () => {
      const { status, body } = await api.record<RefusalBody>({ records: [leastInteraction(items)] });
      assert.equal(status, 400);
      assert.ok(body.details!.some(({ field, code }) => field === 'records' && code === 'unknown_field'));
    });

    it('is 400 for invalid JSON or a repeated key', async () => {
      assertRefusal(await api.request('/user-interactions', { method: 'POST', body: '' }), 400, /JSON/);
      assertRefusal(await api.request('/user-interactions', { body: '{"item_id":' }), 400, /JSON/);
      assertRefusal(
        await api.request('/user-interactions', { body: '{"city":"a","city":"b"}' }),
        400,
        /twice/,
      );
    });

    it('drops unknown fields with handling=lenient, and says so', async () => {
      const sent = leastInteraction(items, { colour: 'red' });
      await assertRefused(sent, 'colour', 'unknown_field');
      const { status, body, headers } = await api.record(sent, { Prefer: 'handling=lenient' });
      assert.equal(status, 201);
      assert.equal(headers.get('preference-applied'), 'handling=lenient');
      assert.ok(!('colour' in body));
    });
  });

  describe('fields', () => {
    for (const name of required) {
      it(`need ${name}`, async () => {
        const { [name]: _, ...without } = fullInteraction(items);
        await assertRefused(without, name, 'required');
        await assertRefused({ ...without, [name]: null }, name, 'required');
      });
    }

    for (const name of optional) {
      it(`may omit ${name}, or set it to null`, async () => {
        const { [name]: _, ...without } = fullInteraction(items);
        assert.equal((await recorded(without))[name], null);
        assert.equal((await recorded({ ...without, [name]: null }))[name], null);
      });
    }

    for (const [name, words] of Object.entries(choices)) {
      it(`hold in ${name} one of ${words.join(', ')} and nothing else`, async () => {
        for (const word of words) {
          const about = name === 'item_type' ? { item_id: items.item[word] } : {};
          const body = await recorded(leastInteraction(items, { [name]: word, ...about }));
          assert.equal(body[name], word);
        }
        for (const other of ['', words[0]!.toLowerCase(), `${words[0]} `, 'OTHERWISE', 'BRANCH']) {
          await assertRefused(leastInteraction(items, { [name]: other }), name, 'not_allowed');
        }
        for (const other of [0, true, [], [words[0]], {}]) {
          await assertRefused(leastInteraction(items, { [name]: other }), name, 'wrong_type');
        }
      });
    }

    const formsOf = (name: string, holds: Holds) => ({ name, holds, required: false });

    for (const name of texts) {
      it(`hold text in ${name}, unchanged`, async () => {
        for (const { sent, shown } of goodFormsOf(formsOf(name, 'text'))) {
          assert.equal((await recorded(leastInteraction(items, { [name]: sent })))[name], shown);
        }
        for (const { sent, code } of badFormsOf(formsOf(name, 'text'))) {
          await assertRefused(leastInteraction(items, { [name]: sent }), name, code);
        }
      });
    }

    for (const name of uuids) {
      it(`hold a UUID in ${name}, shown in lower case`, async () => {
        const known: Record<string, string> = { student_id: items.student, item_id: items.item.SHOP! };
        const id = known[name] ?? randomUUID();
        const body = await recorded(leastInteraction(items, { [name]: id.toUpperCase() }));
        assert.equal(body[name], id);
        for (const { sent, code } of badFormsOf(formsOf(name, 'uuid'))) {
          await assertRefused(leastInteraction(items, { [name]: sent }), name, code);
        }
      });
    }

    it('store recommendation_id as given, whatever it names', async () => {
      const id = randomUUID();
      assert.equal(
        (await recorded(leastInteraction(items, { recommendation_id: id }))).recommendation_id,
        id,
      );
    });
  });

  describe('the item', () => {
    for (const kind of Object.keys(itemKinds)) {
      const about = (id: string | undefined): TestRecord =>
        leastInteraction(items, { item_type: kind, item_id: id });

      it(`may be an existing ${kind}`, async () => {
        const body = await recorded(about(items.item[kind]));
        assert.equal(body.item_type, kind);
        assert.equal(body.item_id, items.item[kind]);
      });

      it(`may not be a ${kind} that was never uploaded`, async () => {
        await assertRefused(about(randomUUID()), 'item_id', 'unknown_reference');
      });

      it(`may not be a ${kind} that only another organisation has`, async () => {
        await assertRefused(about(otherItems.item[kind]), 'item_id', 'unknown_reference');
      });

      for (const other of [...Object.keys(itemKinds), 'student']) {
        if (other === kind) continue;
        it(`may not be a ${kind} with the id of a ${other}`, async () => {
          const id = other === 'student' ? items.student : items.item[other];
          await assertRefused(about(id), 'item_id', 'unknown_reference');
        });
      }

      it(`may be a ${kind} that is marked as deleted`, async () => {
        const type = itemKinds[kind]!;
        const record = specRecord(type, { shops: items.item.SHOP! }, { is_deleted: true });
        assert.equal((await api.upload(type, [record])).status, 200);
        await recorded(about(record[specKey(type)] as string));
      });
    }
  });

  describe('the student', () => {
    const by = (id: string | null): TestRecord => leastInteraction(items, { student_id: id });

    it('may be an existing customer', async () => {
      assert.equal((await recorded(by(items.student))).student_id, items.student);
    });

    it('may not be one that was never uploaded', async () => {
      const id = randomUUID();
      await assertRefused(by(id), 'student_id', 'unknown_reference');
      const customer = specRecord('customers', {}, { customer_id: id });
      assert.equal((await api.upload('customers', [customer])).status, 200);
      await recorded(by(id));
    });

    it('may not be one that only another organisation has', async () => {
      await assertRefused(by(otherItems.student), 'student_id', 'unknown_reference');
    });

    it('may not be found by the user id of a customer', async () => {
      const customer = specRecord('customers', {});
      await api.upload('customers', [customer]);
      await assertRefused(by(customer.user_id as string), 'student_id', 'unknown_reference');
    });

    it('may be one that is marked as deleted', async () => {
      const customer = specRecord('customers', {}, { is_deleted: true });
      await api.upload('customers', [customer]);
      await recorded(by(customer.customer_id as string));
    });

    it('is reported together with an unknown item', async () => {
      const sent = leastInteraction(items, { student_id: randomUUID(), item_id: randomUUID() });
      assertNotRecorded(await api.record<RefusalBody>(sent), [
        { field: 'student_id', code: 'unknown_reference' },
        { field: 'item_id', code: 'unknown_reference' },
      ]);
    });
  });

  describe('event_timestamp', () => {
    for (const [given, moment] of [
      [1, '1970-01-01T00:00:01Z'],
      [1_714_555_800, '2024-05-01T09:30:00Z'],
      [1_714_555_800_123, '2024-05-01T09:30:00.123Z'],
      [99_999_999_999, '5138-11-16T09:46:39Z'],
      [100_000_000_000, '1973-03-03T09:46:40Z'],
      [253_402_300_799_999, '9999-12-31T23:59:59.999Z'],
      ['2024-05-01T09:30:00Z', '2024-05-01T09:30:00Z'],
      ['2024-05-01T09:30:00.123456+02:00', '2024-05-01T07:30:00.123456Z'],
      ['2024-05-01T09:30:00', '2024-05-01T09:30:00Z'],
      ['1969-12-31T23:59:59Z', '1969-12-31T23:59:59Z'],
    ] as const) {
      it(`${JSON.stringify(given)} is echoed as given and means ${moment}`, async () => {
        const body = await recorded(leastInteraction(items, { event_timestamp: given }));
        assert.equal(body.event_timestamp, given);
        assert.equal(body.occurred_at, moment);
        const { body: found } = await api.request<TestRecord>(`/user-interactions/${body.interaction_id}`);
        assert.deepEqual(found, body);
      });
    }

    for (const [code, values] of [
      ['out_of_range', [0, -1, -1_714_555_800, 253_402_300_800_000]],
      ['wrong_type', [1.5, true, [], {}, [1_714_555_800]]],
      [
        'invalid_format',
        ['', '1714555800', 'now', '2024-05-01', '2024-02-30T00:00:00Z', '2024-05-01T25:00:00Z'],
      ],
    ] as const) {
      it(`is refused with ${code} if its value requires it`, async () => {
        for (const event_timestamp of values) {
          await assertRefused(leastInteraction(items, { event_timestamp }), 'event_timestamp', code);
        }
      });
    }
  });

  describe('reading back', () => {
    it('by an unknown id is 404', async () => {
      for (const id of [randomUUID(), 'seven', items.item.SHOP]) {
        assertRefusal(await api.request(`/user-interactions/${id}`), 404, /interaction/);
      }
    });

    it('by an id in upper case finds the same', async () => {
      const body = await recorded(leastInteraction(items));
      const id = (body.interaction_id as string).toUpperCase();
      assert.deepEqual((await api.request(`/user-interactions/${id}`)).body, body);
    });

    describe('a list', () => {
      const COUNT = 230;
      let lister: Api;
      let own: Items;
      let all: TestRecord[];
      const newestFirst = (list: readonly TestRecord[]): TestRecord[] =>
        list.toSorted((a, b) => {
          const [left, right] = [a, b].map((one) => `${one.occurred_at} ${one.interaction_id}`);
          return left! < right! ? 1 : -1;
        });
      const startMs = Date.parse('2024-05-01T00:00:00Z');

      before(async () => {
        lister = await running.newApi();
        own = await uploadItems(lister);
        const kinds = Object.keys(itemKinds);
        all = [];
        for (let at = 0; at < COUNT; at++) {
          const kind = kinds[at % kinds.length]!;
          const sent = leastInteraction(own, {
            interaction_type: choices.interaction_type![at % 4],
            item_type: kind,
            item_id: own.item[kind],
            user_id: at % 5 === 0 ? null : `user ${at % 5} & co`,
            student_id: at % 3 === 0 ? own.student : null,
            source: at % 7 === 0 ? 'SERVICE' : null,
            // Not in the order of arrival, and three with each time.
            event_timestamp: startMs + ((Math.floor(at / 3) * 37) % 101) * 60_000,
          });
          const { status, body } = await lister.record(sent);
          assert.equal(status, 201);
          all.push(body);
        }
        // Sorting by occurred_at as text is only correct if all have the same number of digits.
        assert.ok(all.every(({ occurred_at }) => (occurred_at as string).length === 20));
      });

      it('shows the newest first, 100 by default', async () => {
        const { status, body } = await lister.interactions();
        assert.equal(status, 200);
        assert.deepEqual(Object.keys(body).sort(), ['interactions', 'next_cursor']);
        assert.deepEqual(body.interactions, newestFirst(all).slice(0, 100));
        assert.equal(typeof body.next_cursor, 'string');
      });

      for (const limit of [1, 7, 115, COUNT - 1, COUNT, 1000]) {
        it(`is paged through with a limit of ${limit}, each interaction once`, async () => {
          const pages = await pagesOfInteractions(lister, `?limit=${limit}`);
          assert.deepEqual(
            pages.map((page) => page.length),
            pageSizes(COUNT, limit),
          );
          assert.deepEqual(pages.flat(), newestFirst(all));
        });
      }

      it('is not disturbed by interactions that arrive between its pages', async () => {
        const first = await lister.interactions(`?limit=50&student_id=${own.student}`);
        const late = leastInteraction(own, {
          student_id: own.student,
          event_timestamp: '2030-01-01T00:00:00Z',
        });
        const { body: arrived } = await lister.record(late);
        const second = await lister.interactions(
          `?limit=50&student_id=${own.student}&cursor=${first.body.next_cursor}`,
        );
        const wanted = newestFirst(all.filter(({ student_id }) => student_id === own.student));
        assert.deepEqual([...first.body.interactions, ...second.body.interactions], wanted);
        all.push(arrived);
      });

      const filters: readonly { name: string; value(): string }[] = [
        { name: 'student_id', value: () => own.student },
        { name: 'user_id', value: () => 'user 2 & co' },
        { name: 'item_type', value: () => 'OFFER' },
        { name: 'item_id', value: () => own.item.KEYWORD! },
        { name: 'interaction_type', value: () => 'SHARE' },
        { name: 'source', value: () => 'SERVICE' },
      ];
      const list = async (query: string): Promise<readonly TestRecord[]> => {
        const { status, body } = await lister.interactions(`?limit=1000&${query}`);
        assert.equal(status, 200);
        assert.equal(body.next_cursor, null);
        return body.interactions;
      };

      for (const { name, value } of filters) {
        it(`is filtered by ${name}`, async () => {
          const wanted = newestFirst(all.filter((one) => one[name] === value()));
          assert.ok(wanted.length > 0 && wanted.length < all.length);
          assert.deepEqual(await list(`${name}=${encodeURIComponent(value())}`), wanted);
        });
      }

      it('is filtered by all filters together', async () => {
        const wanted = newestFirst(
          all.filter((one) => filters.every(({ name, value }) => one[name] === value())),
        );
        const query = filters.map(({ name, value }) => `${name}=${encodeURIComponent(value())}`).join('&');
        assert.deepEqual(await list(query), wanted);
        const some = filters.filter(({ name }) => name === 'student_id' || name === 'source');
        const wantedBySome = newestFirst(
          all.filter((one) => some.every(({ name, value }) => one[name] === value())),
        );
        assert.ok(wantedBySome.length > 0);
        assert.deepEqual(
          await list(some.map(({ name, value }) => `${name}=${value()}`).join('&')),
          wantedBySome,
        );
      });

      it('is filtered by UUIDs in any case', async () => {
        const wanted = newestFirst(all.filter(({ student_id }) => student_id === own.student));
        assert.deepEqual(await list(`student_id=${own.student.toUpperCase()}`), wanted);
      });

      it('is empty if nothing matches', async () => {
        assert.deepEqual(await list(`student_id=${randomUUID()}`), []);
        assert.deepEqual(await list('user_id=nobody'), []);
      });

      it('is filtered by time: from is included, to is not', async () => {
        const at = (minute: number): string => new Date(startMs + minute * 60_000).toISOString();
        const within = (from: number, to: number): TestRecord[] =>
          newestFirst(
            all.filter(({ occurred_at }) => {
              const minute = (Date.parse(occurred_at as string) - startMs) / 60_000;
              return from <= minute && minute < to;
            }),
          );
        const middle = within(37, 74);
        assert.ok(middle.some(({ occurred_at }) => occurred_at === '2024-05-01T00:37:00Z'));
        assert.ok(within(74, 75).length > 0);
        assert.deepEqual(await list(`from=${at(37)}&to=${at(74)}`), middle);
        assert.deepEqual(await list(`from=${at(37)}`), within(37, Number.POSITIVE_INFINITY));
        assert.deepEqual(await list(`to=${at(74)}`), within(Number.NEGATIVE_INFINITY, 74));
        assert.deepEqual(await list(`from=${at(37)}&to=${at(37)}`), []);
        const elsewhere = encodeURIComponent('2024-05-01T02:37:00+02:00');
        assert.deepEqual(await list(`from=${elsewhere}&to=${at(74)}`), middle);
      });

      it('is refused with a bad limit, cursor or filter', async () => {
        const { body: page } = await lister.interactions('?limit=1');
        const { body: shops } = await lister.list('shops', '?limit=1');
        const recordsCursor = Buffer.from(shops.records[0]!.shop_id as string).toString('base64url');
        for (const [query, says] of [
          ['limit=0', /limit/],
          ['limit=-1', /limit/],
          ['limit=1001', /limit/],
          ['limit=1.5', /limit/],
          ['limit=many', /limit/],
          ['limit=', /limit/],
          ['limit=5&limit=6', /limit/],
          ['cursor=', /cursor/],
          ['cursor=nonsense', /cursor/],
          [`cursor=${page.next_cursor}x`, /cursor/],
          [`cursor=${recordsCursor}`, /cursor/],
          ['student_id=seven', /student_id/],
          ['item_id=', /item_id/],
          ['item_type=BRANCH', /item_type/],
          ['interaction_type=share', /interaction_type/],
          ['source=BROWSING', /source/],
          ['user_id=a%00b', /user_id/],
          ['from=yesterday', /^from /],
          ['from=2024-05-01', /^from /],
          ['to=2024-02-30T00:00:00Z', /^to /],
          ['to=1714555800', /^to /],
          ['city=Athens', /city/],
        ] as const) {
          assertRefusal(await lister.request(`/user-interactions?${query}`), 400, says);
        }
      });
    });
  });

  it('stores no refused interaction', async () => {
    const fresh = await running.newApi();
    const freshItems = await uploadItems(fresh);
    for (const spoil of [
      { source: 'BROWSING' },
      { item_id: randomUUID() },
      { student_id: otherItems.student },
    ]) {
      assert.equal((await fresh.record(leastInteraction(freshItems, spoil))).status, 400);
    }
    assert.deepEqual((await fresh.interactions()).body, { interactions: [], next_cursor: null });
  });
});
