import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Browser } from 'happy-dom';
import { expect, test } from 'vitest';
import { serve } from 'waymark/server';
import { createStudioApp } from './app.ts';
import { buildStudio } from './support/studio.ts';

/** The built Studio in a DOM without a screen: what is written there can be read on every machine. */
test('S146 the Studio shows what an agent threw, with its stack, once; clients get neither', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-studio-'));
  await buildStudio(folder);
  const app = createStudioApp();
  const server = await serve(app, { port: 0, log: () => {}, studio: folder });
  const browser = new Browser({
    settings: {
      enableJavaScriptEvaluation: true,
      suppressInsecureJavaScriptEnvironmentWarning: true,
      handleDisabledFileLoadingAsSuccess: true,
    },
  });
  try {
    const page = browser.newPage();
    await page.goto(`${server.url}/studio/#/agents/thrower`);
    const { document, window } = page.mainFrame;
    await expect.poll(() => document.querySelector('textarea')).not.toBeNull();
    // React looks at what the element's own setter did not see.
    const { set } =
      Object.getOwnPropertyDescriptor(window.HTMLTextAreaElement.prototype, 'value') ?? {};
    const field = document.querySelector('textarea');
    set?.call(field, 'go');
    field?.dispatchEvent(new window.Event('input', { bubbles: true }));
    const send = () =>
      [...document.querySelectorAll('button')].find(
        (button) =>
          (button.getAttribute('aria-label') ?? button.textContent).trim() === 'Send' &&
          !button.disabled,
      );
    await expect.poll(() => send() !== undefined).toBe(true);
    send()?.click();
    const textOf = (selector: string): string =>
      document.querySelector(selector)?.textContent ?? '';
    await expect
      .poll(() => textOf('.fault-stack'))
      .toMatch(/^TypeError: my bug is here\n {4}at .*app\.ts/);
    expect(textOf('[role=alert]').match(/my bug is here/g)).toHaveLength(1);
    const [session] = (await app.agent('thrower').listSessions()).items;
    const url = `${server.url}/agents/thrower/sessions/${session?.sessionId}/snapshots?includeOrphaned=true`;
    const stored = await (await fetch(url)).text();
    expect(stored).toContain('"failed"');
    expect(stored).not.toContain('my bug');
  } finally {
    await browser.close();
    await server.close();
    await app.close({ deadlineMs: 50 });
    await rm(folder, { recursive: true });
  }
});
