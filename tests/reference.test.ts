// The reference page at /docs: its content, and its behaviour in a real browser.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it, type TestContext } from 'node:test';
import { problemCodes } from '@headgate/catalogue/problem-codes.ts';
import { recordTypeNames, recordTypes } from '@headgate/catalogue/record-types.ts';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { openApiDocument } from '../server/http/openapi/document.ts';
import type { Operation } from '../server/http/openapi/document-shape.ts';
import { inline } from '../server/http/reference/markdown.ts';
import { referencePage } from '../server/http/reference/page.ts';
import { refusals } from '../server/http/refusals.ts';
import { testDatabases } from '../server/store/test-databases.ts';
import { times } from '../server/store/test-thoroughness.ts';
import { openBrowser } from './harness/browser.ts';
import { runningHeadgate } from './harness/running-headgate.ts';

const MOST_BYTES = 1_000_000;
const LEAST_CONTRAST = 4.5;
const limits = {
  maxRecords: 5000,
  batchSize: 1000,
  maxBodyBytes: 32 * 1024 * 1024,
  rateLimitPerSecond: 1000,
};
/** Runs in the page, so it is not TypeScript. */
const faintTexts = await readFile(new URL('harness/faint-texts.js', import.meta.url), 'utf8');
const document = openApiDocument(limits);
const wide = { viewport: { width: 1440, height: 900 } };
const narrow = { viewport: { width: 360, height: 740 } };

describe('the reference page', () => {
  const page = referencePage(document);
  const ids = [...page.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id!);

  it('has one anchor with a stable name for everything', () => {
    assert.equal(new Set(ids).size, ids.length);
    const wanted = [
      ...recordTypeNames.flatMap((type) => [
        type,
        ...['upload', 'list', 'get', 'object'].map((what) => `${type}-${what}`),
        ...Object.keys(recordTypes[type].fields).map((field) => `${type}-${field}`),
      ]),
      ...Object.keys(problemCodes).map((code) => `code-${code}`),
      ...Object.values(refusals).map(({ status }) => `status-${status}`),
      'interactions-record',
      'interactions-occurred_at',
      'authentication',
      'upload-order',
      'limits',
      'pagination',
      'upload-result-batches.data.errors.index',
    ];
    assert.deepEqual(
      wanted.filter((id) => !ids.includes(id)),
      [],
    );
  });

  it('has no broken link within itself', () => {
    const targets = [...page.matchAll(/ href="#([^"]*)"/g)].map(([, target]) => target!);
    assert.ok(targets.length > 500);
    assert.deepEqual(
      targets.filter((target) => !ids.includes(target)),
      [],
    );
  });

  it('escapes everything that it shows', () => {
    const hostile = `<hostile a="b" c='d'>&amp;\n<hostile>`;
    const shownKeys = new Set([
      'title',
      'summary',
      'description',
      'x-displayName',
      'source',
      'label',
      'value',
      'enum',
      'url',
    ]);
    const poison = (value: unknown, isShown: boolean): unknown => {
      if (typeof value === 'string') return isShown ? value + hostile : value;
      if (Array.isArray(value)) return value.map((item) => poison(item, isShown));
      if (value === null || typeof value !== 'object') return value;
      return Object.fromEntries(
        Object.entries(value).map(([name, inner]) => [name, poison(inner, isShown || shownKeys.has(name))]),
      );
    };
    const { components, ...others } = document;
    const { properties } = components.schemas.Shop as { properties: object };
    const shop = { ...components.schemas.Shop, properties: { ...properties, [hostile]: { type: hostile } } };
    const poisoned = {
      ...(poison(others, false) as typeof others),
      components: {
        ...(poison(components, false) as typeof components),
        schemas: { ...(poison(components.schemas, false) as typeof components.schemas), Shop: shop },
      },
    };
    const shown = referencePage(poisoned);
    assert.ok(shown.split('&lt;hostile').length > 1000);
    assert.ok(!shown.includes('<hostile'));
    assert.ok(!shown.includes('a="b"'));
    assert.ok(!shown.includes("c='d'"));
  });

  it('makes no link of an address that could run code', () => {
    assert.equal(inline('[x](javascript:alert)').text, '[x](javascript:alert)');
    assert.equal(inline('[x](data:text/html,y)').text, '[x](data:text/html,y)');
    assert.equal(inline('[`x`](#y)').text, '<a href="#y"><code>x</code></a>');
  });
});

describe('/docs', () => {
  const running = runningHeadgate(testDatabases[0]!, { HEADGATE_RATE_LIMIT: '1000' });
  let browser: Browser | string;

  before(async () => {
    browser = await openBrowser();
  });
  after(async () => {
    if (typeof browser !== 'string') await browser.close();
  });

  /** Opens the page, and fails if it loads anything from another server or reports an error. */
  const look = async (
    t: TestContext,
    address: string,
    options: BrowserContextOptions,
    see: (page: Page) => Promise<void>,
  ): Promise<void> => {
    if (typeof browser === 'string') return t.skip(browser);
    const { origin } = new URL(running.headgate.url);
    const context = await browser.newContext({
      permissions: ['clipboard-read', 'clipboard-write'],
      ...options,
    });
    const complaints: string[] = [];
    try {
      await context.route('**', (route) => {
        const url = route.request().url();
        if (url.startsWith(`${origin}/`)) return route.continue();
        complaints.push(`asked for ${url}`);
        return route.abort();
      });
      const page = await context.newPage();
      page.on('console', (message) => {
        if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('response', (response) => {
        if (response.status() >= 400) complaints.push(`${response.status()} for ${response.url()}`);
      });
      await page.goto(`${running.headgate.url}${address}`);
      await see(page);
      assert.deepEqual(complaints, []);
    } finally {
      await context.close();
    }
  };

  it('is small, and may load only from this server', async () => {
    const answer = await fetch(`${running.headgate.url}/docs`);
    assert.match(answer.headers.get('content-type')!, /^text\/html\b/);
    assert.equal(
      answer.headers.get('content-security-policy'),
      "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff');
    const text = await answer.text();
    const [style, script] = await Promise.all(
      ['css', 'js'].map(async (kind) => {
        const asset = await fetch(`${running.headgate.url}/docs/reference.${kind}`);
        assert.match(
          asset.headers.get('content-type')!,
          kind === 'css' ? /^text\/css\b/ : /^text\/javascript\b/,
        );
        return asset.text();
      }),
    );
    assert.ok(text.length + style!.length + script!.length < MOST_BYTES);
    assert.ok(!/<style|<script>| style=| on\w+=/.test(text));
  });

  it('shows everything without scripts', async (t) => {
    await look(t, '/docs', { ...wide, javaScriptEnabled: false }, async (page) => {
      const figures = await page.locator('.code').all();
      assert.ok(figures.length > 200);
      assert.equal(await page.locator('.code:not(:visible)').count(), 0);
      assert.equal(await page.locator('nav a:not(:visible)').count(), 0);
    });
  });

  it('scrolls to the part that an address names', async (t) => {
    const ids = ['code-unknown_reference', 'student-favourites-upload', 'shops-shop_id'];
    for (const id of ids.slice(0, times(3, 1))) {
      await look(t, `/docs#${id}`, wide, async (page) => {
        const place = await page.locator(`[id="${id}"]`).boundingBox();
        assert.ok(place!.y >= 0 && place!.y < 300, `${id} is at ${place!.y}`);
      });
    }
  });

  it('ignores the fragment of an address if it cannot be decoded', async (t) => {
    await look(t, '/docs#%zz', wide, async (page) => {
      assert.ok(await page.locator('.filter input').isVisible());
    });
  });

  it('marks the position of the reader in the navigation', async (t) => {
    await look(t, '/docs', wide, async (page) => {
      for (const id of ['pagination', 'transactions-list', 'interactions']) {
        await page.evaluate(`location.hash = '${id}'`);
        await page.locator(`nav a[href="#${id}"][aria-current]`).waitFor();
        assert.equal(await page.locator('nav [aria-current]').count(), 1);
        assert.ok(await page.locator(`nav a[href="#${id}"]`).isVisible());
      }
    });
  });

  it('filters the navigation by names, fields, codes and paths', async (t) => {
    await look(t, '/docs', wide, async (page) => {
      const filter = page.getByRole('searchbox', { name: 'Filter the contents' });
      const shown = async (): Promise<string[]> =>
        page.locator('nav .group > ul > li:visible > a').allTextContents();
      const all = await shown();
      await page.keyboard.press('/');
      await page.keyboard.type('birthdate');
      assert.deepEqual(await shown(), ['Customers']);
      await filter.fill('unknown_reference');
      assert.deepEqual(await shown(), ['Errors']);
      await filter.fill('/user-interactions/{id}');
      assert.deepEqual(await page.locator('nav a:visible').allTextContents(), [
        'Interactions',
        'Get an interaction',
      ]);
      await filter.fill('no such thing');
      assert.deepEqual(await shown(), []);
      assert.ok(await page.getByText('Nothing matches.').isVisible());
      await filter.fill('');
      assert.deepEqual(await shown(), all);
    });
  });

  it('shows one language at a time, everywhere the same, and remembers it', async (t) => {
    await look(t, '/docs#shops-upload', wide, async (page) => {
      const samples = Object.values(document.paths)
        .flatMap((item) => Object.values(item) as Operation[])
        .filter((operation) => operation['x-codeSamples'].some(({ lang }) => lang === 'TypeScript')).length;
      const visible = (label: string) => page.locator(`.tabs .code[data-label="${label}"]:visible`).count();
      assert.equal(await visible('TypeScript'), 0);
      const tab = page.locator('[id="shops-upload"]').getByRole('tab', { name: 'TypeScript' });
      await tab.click();
      assert.equal(await tab.getAttribute('aria-selected'), 'true');
      assert.equal(await visible('TypeScript'), samples);
      const place = await tab.boundingBox();
      assert.ok(place!.y >= 0 && place!.y < 900);
      await page.keyboard.press('ArrowLeft');
      assert.equal(await visible('TypeScript'), 0);
      await page.keyboard.press('ArrowRight');
      await page.reload();
      assert.equal(await visible('TypeScript'), samples);
    });
  });

  it('copies a request as described, and the response that is shown', async (t) => {
    await look(t, '/docs#offers-upload', wide, async (page) => {
      const { post } = document.paths['/v1/data/offers']!;
      const part = page.locator('[id="offers-upload"]');
      const copied = () => page.evaluate<string>('navigator.clipboard.readText()');
      await part.getByRole('button', { name: 'Copy: Request' }).click();
      await part.getByText('Copied').waitFor();
      assert.equal(await copied(), post!['x-codeSamples'][0]!.source);
      await part.getByRole('tab', { name: '207' }).click();
      await part.getByRole('button', { name: 'Copy: Response' }).click();
      await part.getByText('Copied').nth(1).waitFor();
      assert.match(await copied(), /unknown_reference/);
    });
  });

  it('fits a narrow screen, with the navigation behind a button', async (t) => {
    await look(t, '/docs', narrow, async (page) => {
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 360);
      const link = page.locator('nav a[href="#pagination"]');
      const button = page.getByRole('button', { name: 'Contents' });
      assert.equal(await link.isVisible(), false);
      await button.click();
      assert.equal(await button.getAttribute('aria-expanded'), 'true');
      assert.ok(await link.isVisible());
      await page.keyboard.press('Escape');
      assert.equal(await link.isVisible(), false);
      await button.click();
      await link.click();
      assert.equal(await link.isVisible(), false);
      const place = await page.locator('#pagination-title').boundingBox();
      assert.ok(
        place!.y >= 50 && place!.y < 300,
        `the heading is at ${place!.y}, hidden by the bar or too far down`,
      );
    });
  });

  it('can be used by keyboard and by screen readers', async (t) => {
    await look(t, '/docs', wide, async (page) => {
      assert.equal(await page.getByRole('banner').count(), 1);
      assert.equal(await page.getByRole('main').count(), 1);
      assert.equal(await page.getByRole('navigation', { name: 'Contents' }).count(), 1);
      const levels = await page
        .locator('h1, h2, h3, h4')
        .evaluateAll((all) => all.map((one) => Number(one.tagName[1])));
      assert.equal(levels.filter((level) => level === 1).length, 1);
      assert.equal(levels[0], 1);
      const leaps = levels.filter((level, at) => at > 0 && level > levels[at - 1]! + 1);
      assert.deepEqual(leaps, []);
      const nameless = await page
        .locator('a, button, input, summary, pre')
        .evaluateAll((all) =>
          all
            .filter((one) => `${one.getAttribute('aria-label') ?? ''}${one.textContent}`.trim() === '')
            .map((one) => one.outerHTML),
        );
      assert.deepEqual(nameless, []);
      await page.keyboard.press('Tab');
      assert.ok(await page.getByRole('link', { name: 'Skip to the content' }).isVisible());
      for (let presses = 0; presses < 8; presses++) {
        await page.keyboard.press('Tab');
        const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle');
        assert.equal(outline, 'solid');
      }
    });
  });

  it('has enough contrast when it is light and when it is dark', async (t) => {
    await look(t, '/docs#shops-upload', wide, async (page) => {
      await page.locator('nav [aria-current]').waitFor();
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        const isDark = await page.evaluate<boolean>(`matchMedia('(prefers-color-scheme: dark)').matches`);
        assert.equal(isDark, colorScheme === 'dark');
        const faint = await page.evaluate<{ texts: string[]; looked: number }>(
          `${faintTexts}; faintTexts(${LEAST_CONTRAST})`,
        );
        assert.deepEqual(faint.texts, [], colorScheme);
        assert.ok(faint.looked > 15, `only ${faint.looked} pairs of colours were looked at`);
      }
    });
  });
});
