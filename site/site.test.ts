/** The built site in a browser: reads well in both schemes, is found by its search, and asks no other server for anything. */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { launchChromium, type TestBrowser } from '../test/browser/support/chromium.ts';
import { findBarriers } from '../test/studio/support/axe.ts';

const html = resolve(import.meta.dirname, 'dist/html');
const pictures = resolve(import.meta.dirname, 'dist/pictures');
const types: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.md': 'text/markdown',
  '.svg': 'image/svg+xml',
};

const server = createServer(({ url = '/' }, response) => {
  const path = decodeURIComponent(new URL(url, 'http://localhost').pathname);
  const file = [path, `${path}.html`, `${path}/index.html`]
    .map((name) => join(html, name))
    .find((name) => existsSync(name) && statSync(name).isFile());
  response.writeHead(file === undefined ? 404 : 200, {
    'content-type': types[extname(file ?? '')] ?? 'application/octet-stream',
  });
  response.end(file === undefined ? undefined : readFileSync(file));
});
let browser: TestBrowser;
let url: string;

beforeAll(async () => {
  mkdirSync(pictures, { recursive: true });
  browser = await launchChromium();
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  await browser?.close();
  server.closeAllConnections();
  server.close();
});

const screens = { desk: { width: 1280, height: 900 }, phone: { width: 390, height: 844 } };
const shown = [
  ['home', '/'],
  ['guide', '/getting-started'],
  ['concepts', '/concepts'],
  ['performance', '/performance'],
  ['reference', '/api/waymark/interfaces/AppOptions'],
] as const;
const views = (['light', 'dark'] as const).flatMap((colorScheme) =>
  (['desk', 'phone'] as const).map((screen) => ({ colorScheme, screen })),
);

test.each(views)('pages on a $screen, $colorScheme', async ({ colorScheme, screen }) => {
  const { page, context, errors } = await browser.newPage({
    viewport: screens[screen],
    colorScheme,
  });
  const outside: string[] = [];
  const barriers: string[] = [];
  page.on('request', (request) => {
    if (!request.url().startsWith(url) && !request.url().startsWith('data:'))
      outside.push(request.url());
  });
  for (const [name, path] of shown) {
    await page.goto(url + path, { waitUntil: 'networkidle' });
    await page.screenshot({ path: join(pictures, `${name}-${screen}-${colorScheme}.png`) });
    const what = colorScheme === 'light' ? 'everything' : 'contrast';
    // The checks need a minute for the tables of figures.
    const found = name === 'performance' ? [] : await findBarriers(page, what);
    barriers.push(...found.map((each) => `${path}: ${each}`));
    const wide = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    );
    if (wide > 0) barriers.push(`${path} scrolls sideways`);
    if (screen === 'phone') {
      const small = await page.evaluate(tooSmall);
      barriers.push(...small.map((each) => `${path}: too small to touch: ${each}`));
    }
    if (screen === 'phone' && name === 'reference') {
      const cut = await page
        .locator('table')
        .evaluate((each) => each.scrollWidth - each.clientWidth);
      if (cut > 0) barriers.push(`${path}: the table scrolls sideways`);
    }
  }
  expect(barriers).toEqual([]);
  expect(errors).toEqual([]);
  expect(outside).toEqual([]);
  await context.close();
});

/** Controls of less than 24 pixels (WCAG 2.5.8). Runs in the page. */
function tooSmall(): string[] {
  const controls = [...document.querySelectorAll('button, .VPNav a, .VPLocalNav a')];
  return controls
    .filter((each) => {
      const { width, height } = each.getBoundingClientRect();
      return width > 0 && (width < 24 || height < 24);
    })
    .map((each) => each.outerHTML.slice(0, 120));
}

test.each(views)(
  'the search on a $screen, $colorScheme, finds pages and exports without another server',
  async ({ colorScheme, screen }) => {
    const { page, context, errors } = await browser.newPage({
      viewport: screens[screen],
      colorScheme,
    });
    await page.goto(`${url}/concepts`, { waitUntil: 'networkidle' });
    let isRequested = false;
    let answer = (): void => {};
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    await page.route(/localSearchIndex/, async (route) => {
      isRequested = true;
      await answered;
      await route.continue();
    });
    await page.keyboard.press('Control+k');
    await page.getByRole('searchbox').fill('sqliteStore');
    await page.getByText('Searching…').waitFor();
    expect(isRequested).toBe(true);
    answer();
    const results = page.locator('.VPLocalSearchBox .result');
    await results.first().waitFor();
    expect(await page.getByText('Searching…').count()).toBe(0);
    await page.screenshot({ path: join(pictures, `search-${screen}-${colorScheme}.png`) });
    const links = await results.evaluateAll((all) =>
      all.map((each) => each.getAttribute('href') ?? ''),
    );
    expect(links.some((link) => link.startsWith('/stores'))).toBe(true);
    expect(links.some((link) => link.startsWith('/api/'))).toBe(true);
    expect(links[0]).toMatch(/^\/stores/);
    expect(await findBarriers(page, colorScheme === 'light' ? 'everything' : 'contrast')).toEqual(
      [],
    );
    expect(errors).toEqual([]);
    await context.close();
  },
);

test('each page has a Markdown copy, and llms.txt names pages that exist', () => {
  const files = readdirSync(html, { recursive: true, encoding: 'utf8' });
  const pages = files.filter((name) => name.endsWith('.html') && !/^(404|index)\.html$/.test(name));
  expect(pages.length).toBeGreaterThan(100);
  expect(pages.filter((name) => !files.includes(name.replace('.html', '.md')))).toEqual([]);
  const listed = [...readFileSync(join(html, 'llms.txt'), 'utf8').matchAll(/\]\(\/([^)]+)\)/g)];
  expect(listed.map(([, name = '']) => name).filter((name) => !files.includes(name))).toEqual([]);
  expect(readFileSync(join(html, 'llms-full.txt'), 'utf8').length).toBeGreaterThan(100_000);
});
