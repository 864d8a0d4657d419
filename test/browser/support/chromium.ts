import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Page,
} from 'playwright-core';
import { findChromium } from './find-chromium.ts';

/** A Chromium that ends with the test that uses it. */
export interface TestBrowser extends AsyncDisposable {
  readonly browser: Browser;
  /** Opens a page in a new context, and records its errors. */
  newPage(options?: BrowserContextOptions): Promise<TestPage>;
  close(): Promise<void>;
}

/** A page, and what a person would see in its console as errors. */
export interface TestPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /** Uncaught errors and console errors, as texts; a test that expects none says so. */
  readonly errors: readonly string[];
}

/** Starts Chromium. The sandbox is off: tests run as root in containers, and load our pages only. */
export async function launchChromium(): Promise<TestBrowser> {
  const browser = await chromium.launch({
    executablePath: await findChromium(),
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
  });
  const close = (): Promise<void> => browser.close();
  return {
    browser,
    close,
    [Symbol.asyncDispose]: close,
    async newPage(options) {
      const context = await browser.newContext(options);
      const page = await context.newPage();
      page.setDefaultTimeout(60_000);
      const errors: string[] = [];
      page.on('pageerror', (error) => errors.push(error.message));
      page.on('console', (message) => {
        if (message.type() === 'error') errors.push(message.text());
      });
      return { page, context, errors };
    },
  };
}
