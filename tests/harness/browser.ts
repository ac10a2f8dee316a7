// A real browser for tests: the Chromium of this machine, without a window.
//
// HEADGATE_TEST_BROWSER names another executable. Without a browser, tests that need one are skipped with the
// reason; with HEADGATE_TEST_ALL=1 they fail instead.

import { access, constants } from 'node:fs/promises';
import { type Browser, chromium } from 'playwright-core';
import { isThorough } from '../../server/store/test-thoroughness.ts';

const usualPlace = '/usr/bin/chromium';
const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Returns the browser, which the caller closes, or the reason why there is none. */
export async function openBrowser(): Promise<Browser | string> {
  const executablePath = process.env.HEADGATE_TEST_BROWSER || usualPlace;
  const isThere = await access(executablePath, constants.X_OK).then(
    () => true,
    () => false,
  );
  if (isThere) return chromium.launch({ executablePath, headless: true, args: flags });
  const reason = `there is no browser at ${executablePath}; HEADGATE_TEST_BROWSER can name one`;
  if (isThorough) throw new Error(`${reason}, and HEADGATE_TEST_ALL is 1`);
  return reason;
}
