import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type RateLimiter, rateLimiter } from './rate-limit.ts';

function limiterOf(perSecond: number): RateLimiter {
  const limiter = rateLimiter(perSecond);
  assert.ok(limiter !== null);
  return limiter;
}

test('without a rate there is no limiter', () => {
  assert.equal(rateLimiter(null), null);
});

test('a burst of one second’s requests is allowed, then none until a token is available', () => {
  const limiter = limiterOf(10);
  for (let made = 1; made <= 10; made++) {
    const { allowed, limit, remaining, retryAfterSeconds } = limiter.take('a', 5000);
    assert.deepEqual([allowed, limit, remaining, retryAfterSeconds], [true, 10, 10 - made, 0]);
  }
  assert.deepEqual(limiter.take('a', 5099), {
    allowed: false,
    limit: 10,
    remaining: 0,
    resetSeconds: 1,
    retryAfterSeconds: 1,
  });
  assert.equal(limiter.take('a', 5100).allowed, true);
  assert.equal(limiter.take('a', 5100).allowed, false);
});

test('the requests of one key use no tokens of another key', () => {
  const limiter = limiterOf(1);
  assert.equal(limiter.take('a', 0).allowed, true);
  assert.equal(limiter.take('a', 0).allowed, false);
  assert.equal(limiter.take('b', 0).allowed, true);
});

test('a refused request uses no token', () => {
  const limiter = limiterOf(1);
  limiter.take('a', 0);
  for (let ms = 1; ms < 1000; ms++) assert.equal(limiter.take('a', ms).allowed, false);
  assert.equal(limiter.take('a', 1000).allowed, true);
});

test('a clock that is set back neither adds nor removes tokens', () => {
  const limiter = limiterOf(2);
  limiter.take('a', 10_000);
  assert.equal(limiter.take('a', 0).remaining, 0);
  assert.equal(limiter.take('a', 0).allowed, false);
  assert.equal(limiter.take('a', 500).allowed, true);
});

test('full buckets are deleted', () => {
  const limiter = limiterOf(100);
  for (let key = 0; key < 5000; key++) limiter.take(`key ${key}`, key);
  assert.ok(limiter.size <= 1001, `${limiter.size} buckets`);
  limiter.take('last', 10_000);
  assert.equal(limiter.size, 1);
});

test('over any period no key gets more than the rate plus one second’s requests', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 50 }),
      fc.array(fc.integer({ min: 0, max: 400 }), { minLength: 1, maxLength: 300 }),
      (perSecond, pausesMs) => {
        const limiter = limiterOf(perSecond);
        let nowMs = 0;
        let allowed = 0;
        for (const pauseMs of pausesMs) {
          nowMs += pauseMs;
          if (limiter.take('a', nowMs).allowed) allowed++;
          limiter.take('b', nowMs);
        }
        assert.ok(allowed <= perSecond + (nowMs * perSecond) / 1000 + 1e-6);
        if (pausesMs.every((pauseMs) => pauseMs * perSecond >= 1000)) assert.equal(allowed, pausesMs.length);
      },
    ),
  );
});
