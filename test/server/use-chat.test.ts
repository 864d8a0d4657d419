import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleForBrowser, type PageServer, servePage } from '../browser/support/bundle-page.ts';
import { launchChromium, type TestBrowser } from '../browser/support/chromium.ts';
import { startServer } from './kit.ts';

// `useChat` of npm, in a real browser, against a server of ours on another origin.
let browser: TestBrowser;
let pages: PageServer;
let server: Awaited<ReturnType<typeof startServer>>;

beforeAll(async () => {
  const { code } = await bundleForBrowser(new URL('./pages/use-chat-page.tsx', import.meta.url));
  pages = await servePage(code);
  [server, browser] = await Promise.all([
    startServer({ cors: { origins: [pages.url] } }),
    launchChromium(),
  ]);
});
afterAll(async () => {
  await browser?.close();
  await pages?.[Symbol.asyncDispose]();
  await server?.close();
});

async function open(chat: string): Promise<Page> {
  const { page } = await browser.newPage();
  await page.goto(`${pages.url}/?${new URLSearchParams({ api: `${server.url}/ui/chat`, chat })}`);
  return page;
}

async function send(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text);
  await page.getByRole('button', { name: 'Send' }).click();
}

const ready = (page: Page): Promise<void> => page.locator('main[data-status=ready]').waitFor();
const texts = (page: Page): Promise<string[]> => page.locator('li').allTextContents();

test('sends, streams and shows a tool call', async () => {
  const page = await open('browser-1');
  await send(page, 'count 20 20');
  await expect
    .poll(() => texts(page))
    .toEqual(['count 20 20', expect.stringMatching(/^0 1 2 (?!.*19)/)]);
  await expect.poll(() => texts(page)).toEqual(['count 20 20', expect.stringMatching(/ 19 $/)]);
  await ready(page);
  await send(page, 'weather in Rome');
  await expect
    .poll(() => page.locator('code[data-state=output-available]').textContent())
    .toContain('Sunny in Rome');
  await ready(page);
  expect((await texts(page)).at(-1)).toMatch(/^Let me look\..*Sunny in Rome$/);
});

test('an approval on the page lets the tool run', async () => {
  const page = await open('browser-approve');
  await send(page, 'transfer 12');
  await page.getByRole('button', { name: 'Approve' }).click();
  await expect.poll(() => texts(page).then((all) => all.join(' '))).toContain('"moved":12');
  await ready(page);
  expect(await page.getByRole('alert').textContent()).toBe('');
  expect(await texts(page)).toHaveLength(2);
  await page.reload();
  await expect.poll(() => texts(page)).toHaveLength(2);
  expect(await page.getByRole('button', { name: 'Approve' }).count()).toBe(0);
});

test('S582 a declined call is shown as denied, also after a reload', async () => {
  const page = await open('browser-decline');
  await send(page, 'transfer 12');
  await page.getByRole('button', { name: 'Decline' }).click();
  const denied = page.locator('code[data-state=output-denied]');
  await denied.waitFor();
  await ready(page);
  expect(await page.getByRole('alert').textContent()).toBe('');
  await page.reload();
  await denied.waitFor();
});

test('a stop keeps what was said, and the next message goes through', async () => {
  const page = await open('browser-stop');
  await send(page, 'hang');
  await expect.poll(() => texts(page)).toEqual(['hang', 'It hangs']);
  await page.getByRole('button', { name: 'Stop' }).click();
  await ready(page);
  await send(page, 'hello');
  await expect.poll(() => texts(page)).toEqual(['hang', 'It hangs', 'hello', 'You said 2 things.']);
  expect(await page.getByRole('alert').textContent()).toBe('');
});

test('a reload in the middle of an answer goes on with it', async () => {
  const page = await open('browser-reload');
  await send(page, 'hello');
  await expect.poll(() => texts(page)).toEqual(['hello', 'You said 1 things.']);
  await send(page, 'count 60 40');
  await expect.poll(() => texts(page).then((all) => all.at(-1))).toMatch(/^0 1 2 /);
  await page.reload();
  await expect.poll(() => texts(page).then((all) => all.at(-1))).toMatch(/^0 1 2 .* 59 $/);
  await ready(page);
  await page.reload();
  await expect
    .poll(() => texts(page))
    .toEqual([
      'hello',
      'You said 1 things.',
      'count 60 40',
      expect.stringMatching(/^0 1 2 .* 59 $/),
    ]);
});
