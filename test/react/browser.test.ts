import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codeOf } from '../../scripts/docs/regions.ts';
import { bundleForBrowser, type PageServer, servePage } from '../browser/support/bundle-page.ts';
import { launchChromium, type TestBrowser, type TestPage } from '../browser/support/chromium.ts';
import { cuttableLine } from '../browser/support/cuttable-line.ts';
import { serveTestApp } from '../client/support/served.ts';

let browser: TestBrowser;
let pages: PageServer;
let served: Awaited<ReturnType<typeof serveTestApp>>;

beforeAll(async () => {
  const { code } = await bundleForBrowser(new URL('./pages/chat-page.tsx', import.meta.url));
  pages = await servePage(code);
  [served, browser] = await Promise.all([
    serveTestApp({ cors: { origins: [pages.url] } }),
    launchChromium(),
  ]);
});

afterAll(async () => {
  await browser?.close();
  await pages?.[Symbol.asyncDispose]();
  await served?.[Symbol.asyncDispose]();
});

async function open(query: Record<string, string> = {}): Promise<TestPage> {
  const opened = await browser.newPage();
  await opened.page.goto(addressOf(query));
  return opened;
}

function addressOf(query: Record<string, string>): string {
  return `${pages.url}/?${new URLSearchParams({ api: served.url, ...query })}`;
}

async function send(page: Page, text: string): Promise<void> {
  await page.getByLabel('Message').fill(text);
  await page.getByRole('button', { name: 'Send' }).click();
}

async function isReady(page: Page): Promise<void> {
  await page.locator('main[data-phase=ready]').waitFor();
}

function messages(page: Page): Promise<string[]> {
  return page.locator('ul li').allTextContents();
}

test('a message is sent, and its answer streams in', async () => {
  const { page, errors } = await open();
  await send(page, 'wait for streaming');
  await expect.poll(() => page.locator('#text').textContent()).toContain('w2');
  expect(await page.locator('main').getAttribute('data-phase')).toBe('running');
  served.letGo('streaming');
  await isReady(page);
  expect(await messages(page)).toEqual([
    'wait for streaming',
    'w0 w1 w2 [wait: done]',
    'streaming',
  ]);
  expect(await page.locator('ol li').count()).toBe(1);
  expect(errors).toEqual([]);
});

test('a stop keeps what was said', async () => {
  const { page, errors } = await open();
  await send(page, 'hang');
  await expect.poll(() => page.locator('#text').textContent()).toBe('half ');
  await page.getByRole('button', { name: 'Stop' }).click();
  await isReady(page);
  expect(await messages(page)).toEqual(['hang', 'half ']);
  expect(errors).toEqual([]);
});

test('an interrupt is approved after a reload', async () => {
  const { page, errors } = await open();
  await send(page, 'book a table');
  await page.locator('[data-interrupt=book]').waitFor();
  const session = (await page.locator('main').getAttribute('data-session')) ?? '';
  await page.goto(addressOf({ session }));
  await page.getByRole('button', { name: 'Approve' }).click();
  await expect.poll(() => messages(page)).toContain('{"booked":"a table","by":"me"}');
  expect(await page.locator('[data-interrupt]').count()).toBe(0);
  expect(errors).toEqual([]);
});

test('a page that is reloaded in the middle of a turn goes on with it', async () => {
  const { page, errors } = await open();
  await send(page, 'wait for page');
  await expect.poll(() => page.locator('#text').textContent()).toContain('w2');
  const session = (await page.locator('main').getAttribute('data-session')) ?? '';
  await page.goto(addressOf({ session }));
  await page.locator('main[data-phase=running]').waitFor();
  await expect.poll(() => page.locator('#text').textContent()).toMatch(/^w0 .*w2/);
  expect((await messages(page))[0]).toBe('wait for page');
  served.letGo('page');
  await isReady(page);
  const shown = await messages(page);
  expect(shown[0]).toBe('wait for page');
  expect(shown.at(-1)).toBe('page');
  expect(errors).toEqual([]);
});

test('a line that drops is taken up without a gap or a repeat', async () => {
  await using line = await cuttableLine(served.url);
  const { page } = await open({ api: line.url });
  const taken: string[] = [];
  page.on('request', (request) => taken.push(new URL(request.url()).pathname));
  await send(page, 'wait thrice for line');
  for (const round of [0, 1, 2]) {
    await expect.poll(() => page.locator('#text').textContent()).toContain(`w${round * 20 + 5} `);
    line.cut();
    served.letGo(`line-${round}`);
  }
  await isReady(page);
  const said = (await messages(page)).join('').match(/w\d+ /g) ?? [];
  expect(said).toEqual(Array.from({ length: 60 }, (_, at) => `w${at} `));
  expect(taken.filter((path) => path.endsWith('/events')).length).toBeGreaterThanOrEqual(3);
});

test('going back shows the past as it was, and the way that was left beside it', async () => {
  const { page, errors } = await open();
  for (const text of ['say one', 'note Rome', 'say three']) {
    await send(page, text);
    await isReady(page);
  }
  expect(await page.locator('#custom').textContent()).toBe('{"topics":["Rome"]}');
  await page.getByRole('button', { name: 'Go back to 0' }).click();
  await expect.poll(() => messages(page)).toEqual(['say one', 'one']);
  expect(await page.locator('#custom').textContent()).toBe('{"topics":[]}');
  await send(page, 'say else');
  await expect.poll(() => page.locator('ol li').count()).toBe(4);
  await isReady(page);
  await expect
    .poll(() =>
      page.locator('ol li').evaluateAll((items) => items.map((item) => item.dataset.lane)),
    )
    .toEqual(['0', '1', '1', '0']);
  expect(errors).toEqual([]);
});

test('a message that stays as it is is not drawn again', async () => {
  const { page } = await open();
  for (const text of ['say one', 'say two', 'say three']) {
    await send(page, text);
    await isReady(page);
  }
  const before = await page.evaluate('renders.message');
  await send(page, 'say four');
  await isReady(page);
  const drawn = Number(await page.evaluate('renders.message')) - Number(before);
  // What was sent and what came back, each while it streams and when it is saved; twice, as StrictMode draws twice.
  expect(drawn).toBeLessThanOrEqual(12);
});

test('parts of a view are drawn only when they change', async () => {
  const { page, errors } = await open({ page: 'parts' });
  await page.getByRole('button', { name: 'Send' }).click();
  await expect.poll(() => page.locator('#text').textContent()).toContain('w19');
  served.letGo('parts');
  await page.locator('#text[data-phase=ready]').waitFor({ state: 'attached' });
  const renders = (await page.evaluate('renders')) as Record<string, number>;
  expect(renders.text).toBeGreaterThan(renders.parts ?? 0);
  expect(renders.parts).toBeLessThanOrEqual(2);
  expect(renders.topics).toBeLessThanOrEqual(6);
  expect(await page.locator('#reason').textContent()).toBe('stop');
  expect(errors).toEqual([]);
});

test('the documented page shows a whole conversation, with tools and approvals, in 30 lines', async () => {
  const lines = codeOf(new URL('../../docs/snippets/react.tsx', import.meta.url).pathname, 'chat');
  expect(lines.split('\n').length).toBeLessThanOrEqual(30);
  const { page, errors } = await open({ page: 'documented' });
  const ask = async (text: string): Promise<void> => {
    await page.getByLabel('Message').fill(text);
    // Disabled while a turn runs; the click waits until it is not.
    await page.getByRole('button', { name: 'Send' }).click();
  };
  const rows = () => page.locator('article').allTextContents();
  await ask('weather in Oslo');
  await expect.poll(async () => (await rows()).at(-1)).toBe('{"city":"Oslo","sky":"clear"}');
  await ask('book a table');
  await page.getByRole('button', { name: 'Decline' }).waitFor();
  expect((await rows()).at(-1)).toContain('"status":"waiting"');
  await page.getByRole('button', { name: 'Decline' }).click();
  await expect.poll(async () => (await rows()).join('\n')).toContain('"status":"declined"');
  await ask('book a bed');
  await page.getByRole('button', { name: 'Approve' }).click();
  await expect.poll(async () => (await rows()).at(-1)).toContain('"booked":"a bed"');
  expect((await rows()).every((row) => row !== '')).toBe(true);
  await ask('fail');
  await page.getByRole('alert').waitFor();
  expect(errors).toEqual([]);
});

test('custom state, status and artifacts are live', async () => {
  const { page, errors } = await open({ page: 'counter' });
  await page.getByRole('button', { name: 'Send' }).click();
  await expect.poll(() => page.locator('#count').textContent()).toBe('3 3 1');
  expect(errors).toEqual([]);
});
