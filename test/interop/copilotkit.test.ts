import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { bundleForBrowser, type PageServer, servePage } from '../browser/support/bundle-page.ts';
import { launchChromium, type TestBrowser } from '../browser/support/chromium.ts';
import { createAguiApp } from '../server/agui-app.ts';
import { startServer } from '../server/kit.ts';
import { eventually } from '../support/eventually.ts';
import { createCopilotServer } from './copilotkit/runtime.ts';

let server: Awaited<ReturnType<typeof startServer>>;
let copilot: Server;
let pages: PageServer;
let browser: TestBrowser;

beforeAll(async () => {
  process.env.COPILOTKIT_TELEMETRY_DISABLED = 'true';
  process.env.DO_NOT_TRACK = '1';
  server = await startServer({ app: createAguiApp(), agui: true });
  copilot = createCopilotServer(`${server.url}/agui/chat`);
  await new Promise<void>((resolve) => copilot.listen(0, '127.0.0.1', resolve));
  const { code } = await bundleForBrowser(new URL('./copilotkit/main.tsx', import.meta.url));
  pages = await servePage(code);
  browser = await launchChromium();
}, 300_000);

afterAll(async () => {
  await browser?.close();
  await pages?.[Symbol.asyncDispose]();
  copilot?.closeAllConnections();
  copilot?.close();
  await server?.close();
});

const runtimeUrl = (): string =>
  `http://127.0.0.1:${(copilot.address() as AddressInfo).port}/api/copilotkit`;

async function open(): Promise<Page> {
  const { page, context } = await browser.newPage();
  // The page loads nothing from elsewhere.
  await context.route(/^https?:\/\/(?!127\.0\.0\.1)/, (route) => route.abort());
  await page.goto(`${pages.url}/?${new URLSearchParams({ runtime: runtimeUrl() })}`);
  await page.getByTestId('copilot-chat-textarea').waitFor();
  return page;
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByTestId('copilot-chat-textarea').fill(text);
  await page.getByTestId('copilot-chat-textarea').press('Enter');
}

const answer = (page: Page, text: string): Promise<void> =>
  page.getByTestId('copilot-assistant-message').filter({ hasText: text }).last().waitFor();

const chat = () => {
  const found = server.app.agents().find(({ name }) => name === 'chat');
  if (!found) throw new Error('There is no agent "chat".');
  return found;
};

async function lastSession(): Promise<string> {
  return (await chat().listSessions({ limit: 1 })).items[0]?.sessionId ?? '';
}

test('a CopilotKit page: text, tools, state, a tool of the page, an approval and a stop', async () => {
  const page = await open();
  await say(page, 'hello');
  await answer(page, 'You said 1 things.');

  await say(page, 'weather in Oslo');
  await answer(page, 'Sunny in Oslo');

  await say(page, 'note milk');
  await eventually(async () =>
    expect(await page.locator('output').textContent()).toContain('"notes":["milk"]'),
  );
  const thread = await lastSession();
  await eventually(async () =>
    expect(JSON.parse((await page.locator('output').textContent()) ?? '')).toEqual(
      (await chat().getSession(thread))?.state?.custom,
    ),
  );

  await say(page, 'map of Rome');
  await eventually(async () => expect(await page.title()).toBe('Map of Rome'));
  await answer(page, 'Showed Rome');

  await say(page, 'delete notes');
  await page.getByRole('button', { name: /delete/ }).click();
  await answer(page, 'deleted notes');

  await say(page, 'hang');
  await answer(page, 'It hangs');
  await page.getByTestId('copilot-send-button').click();
  await eventually(async () => expect((await chat().getSession(thread))?.running).toBeUndefined());
  expect((await chat().getSession(thread))?.text).toBe('It hangs');
  await say(page, 'and now?');
  await answer(page, 'You said 7 things.');
}, 300_000);
