import { renderToString } from 'react-dom/server';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleForBrowser, servePage } from '../browser/support/bundle-page.ts';
import { launchChromium } from '../browser/support/chromium.ts';
import { serveTestApp } from '../client/support/served.ts';
import { SessionView } from './pages/ssr-view.tsx';

let served: Awaited<ReturnType<typeof serveTestApp>>;
beforeAll(async () => {
  served = await serveTestApp({ cors: { origins: true } });
});
afterAll(() => served[Symbol.asyncDispose]());

test('a server renders a session that it has read', async () => {
  const { sessionId } = await served.chat.runText('say one');
  const initial = await served.chat.getSession(sessionId);
  const html = renderToString(<SessionView url={served.url} {...(initial && { initial })} />);
  expect(html).toContain('data-phase="ready"');
  expect(html).toContain('user model');
});

test('a server renders a session that it has not read as loading, and asks nobody', () => {
  const html = renderToString(<SessionView url="http://127.0.0.1:1" />);
  expect(html).toContain('data-phase="loading"');
});

test('a browser takes over what the server rendered, and goes on with it', async () => {
  const { sessionId } = await served.chat.runText('say one');
  const initial = await served.chat.getSession(sessionId);
  const html = renderToString(<SessionView url={served.url} {...(initial && { initial })} />);
  const { code } = await bundleForBrowser(new URL('./pages/ssr-page.tsx', import.meta.url));
  await using pages = await servePage(code, { html });
  await using browser = await launchChromium();
  const { page, errors } = await browser.newPage();
  const data = encodeURIComponent(JSON.stringify({ url: served.url, initial }));
  await page.goto(`${pages.url}/#${data}`);
  await page.getByRole('button', { name: 'Send' }).click();
  await expect.poll(() => page.locator('p').textContent()).toBe('user model user model');
  expect(errors).toEqual([]);
});
