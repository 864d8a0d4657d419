import { serve } from '@hono/node-server';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, memoryStore, waymark } from 'waymark';
import { defineDesk } from '../../examples/support-desk/desk.ts';
import { demoShop } from '../../examples/support-desk/shop.ts';
import { createSite } from '../../examples/support-desk/site.ts';
import { bundleForBrowser } from '../browser/support/bundle-page.ts';
import { launchChromium, type TestBrowser } from '../browser/support/chromium.ts';

const shop = demoShop();
let app: App;
let browser: TestBrowser;
let server: ReturnType<typeof serve>;
let url: string;

beforeAll(async () => {
  app = waymark({ store: memoryStore() });
  defineDesk(app, shop);
  const page = new URL('../../examples/support-desk/page/main.tsx', import.meta.url);
  const { code } = await bundleForBrowser(page);
  const site = createSite(app, { secret: 'a secret of the test, thirty-two bytes', page: code });
  url = await new Promise((listening) => {
    server = serve({ fetch: site.fetch, hostname: '127.0.0.1', port: 0 }, ({ port }) =>
      listening(`http://127.0.0.1:${port}`),
    );
  });
  browser = await launchChromium();
});

afterAll(async () => {
  await browser?.close();
  server?.close();
  await app?.close();
});

test('an employee signs in, asks, approves a refund, and finds the conversation again', async () => {
  const { page, errors } = await browser.newPage();
  await page.goto(url);
  await page.getByRole('button', { name: 'ada' }).click();
  const send = async (text: string): Promise<void> => {
    await page.getByLabel('Message').fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
  };
  await send('Where is order 8?');
  await page.getByText('Ines bought “Bookshelf” and paid 260 €.').waitFor();
  await send('Refund 60 of order 8');
  await page.getByText('Refund 60 € of order 8?').waitFor();
  expect(shop.payments.size).toBe(0);
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByText('60 € of order 8 (p-1)').waitFor();
  await page.getByText('Refunded 60 €, payment p-1.').waitFor();

  await page.getByRole('button', { name: 'New conversation' }).click();
  await expect.poll(() => page.getByText('60 € of order 8 (p-1)').count()).toBe(0);
  await page.getByRole('button', { name: 'Where is order 8?' }).click();
  await page.getByText('60 € of order 8 (p-1)').waitFor();
  expect(errors).toEqual([]);
});
