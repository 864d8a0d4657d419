import { readFile } from 'node:fs/promises';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { hostile } from './app.ts';
import { handsOn } from './support/hands.ts';
import { soon } from './support/soon.ts';
import { openStudio, type Studio } from './support/studio.ts';

let studio: Studio;

beforeAll(async () => {
  studio = await openStudio();
});
afterAll(() => studio?.[Symbol.asyncDispose]());

/** What an agent's words have become on the page, besides words. */
function harmIn(page: Page): Promise<readonly string[]> {
  return page.evaluate(() => {
    const isHarmless = (url: string): boolean => /^(https?:|mailto:|#|data:image\/)/.test(url);
    const found = 'broken' in window ? ['something was run'] : [];
    for (const element of document.querySelectorAll('#root *')) {
      if (/^(script|iframe|object|embed|base|link|style|meta)$/i.test(element.tagName))
        found.push(element.tagName);
      for (const { name, value } of element.attributes) {
        if (name.startsWith('on')) found.push(`${name}=${value}`);
        const isAddress = ['href', 'src', 'action', 'formaction', 'xlink:href'].includes(name);
        if (isAddress && !isHarmless(value)) found.push(`${name}=${value}`);
      }
    }
    return found;
  });
}

test('what agents say and make is shown, never run and never fetched', async () => {
  const { page, errors } = await studio.open();
  const asked: string[] = [];
  page.on('request', (request) => asked.push(new URL(request.url()).host));
  const hands = handsOn(page);
  const trouble = studio.app.agent('trouble');
  const { sessionId, snapshotId = '' } = await trouble.runText('html');
  await trouble.runText('echo html', { sessionId });
  await trouble.runText('ask html', { sessionId });
  await trouble.label(snapshotId, hostile.html);
  await trouble.updateSession(sessionId, { title: hostile.html });
  await page.goto(`${studio.url}/studio/#/agents/trouble/${sessionId}`);

  await page.getByRole('group', { name: 'ask needs your answer' }).waitFor();
  await soon(() => page.title()).toContain('<img src=x');
  await hands.row(/labelled <img/).waitFor();
  const text = (await hands.messages.textContent()) ?? '';
  expect(text).toContain('<script>window.broken=1</script>');
  expect(await page.locator('#root a', { hasText: 'fine' }).getAttribute('rel')).toContain(
    'noopener',
  );
  for (const word of ['click', 'shout', 'page', 'drawn']) {
    expect(await page.locator('#root a', { hasText: new RegExp(`^${word}$`) }).count()).toBe(0);
  }
  for (const details of await hands.messages.locator('details').all()) {
    await details.locator('summary').first().click();
  }
  for (const tab of ['State', 'Diff', 'Trace']) {
    await hands.tab(tab);
    expect([tab, await harmIn(page)]).toEqual([tab, []]);
  }

  await page.goto(`${studio.url}/studio/#/agents/filer`);
  await page.getByRole('button', { name: 'Agent: filer' }).waitFor();
  await hands.say(hostile.html.slice(0, 30));
  await hands.tab('Files');
  const files = page.getByRole('list', { name: 'Files' }).getByRole('button');
  for (const file of await files.all()) {
    await file.click();
    for (const mode of ['Source', 'Changes', 'Preview']) {
      const button = page.getByRole('button', { name: mode, exact: true });
      if (await button.isEnabled()) await button.click();
      expect([await file.textContent(), mode, await harmIn(page)]).toEqual([
        await file.textContent(),
        mode,
        [],
      ]);
    }
    const name = await file.locator('span').first().textContent();
    if (name === 'page.pdf') await page.getByRole('button', { name: 'Download page.pdf' }).click();
  }
  expect(new Set(asked)).toEqual(new Set([new URL(studio.url).host]));
  expect(await page.evaluate(() => 'broken' in window)).toBe(false);
  expect(errors).toEqual([]);
});

test('a file of several megabytes is shown in part and can be had in full', async () => {
  const { page, errors } = await studio.open('agents/filer');
  const hands = handsOn(page);
  await hands.say('huge');
  await hands.tab('Files');
  await page.getByRole('button', { name: /^page\.html/ }).click();
  const preview = page.getByRole('region', { name: 'page.html' });
  await preview.waitFor();
  expect(await preview.textContent()).toContain('40,001 lines');
  const drawn = async (): Promise<number> => ((await preview.textContent()) ?? '').length;
  expect(await drawn()).toBeLessThan(50_000);
  await preview.getByRole('button', { name: /Show more/ }).click();
  await soon(drawn).toBeGreaterThan(60_000);

  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download page.html' }).click(),
  ]);
  const { length } = await readFile(await download.path());
  expect(length).toBeGreaterThan(4_000_000);

  // All else is as quick as ever.
  await hands.tab('Diff');
  await soon(() => hands.inspector.textContent()).toContain('Too large to compare line by line');
  await hands.say('small');
  await soon(() => hands.inspector.textContent()).toContain('page.html');
  expect(errors).toEqual([]);
});

test('a file that the store keeps apart from the state is shown with its size and downloaded', async () => {
  const { page, errors } = await studio.open('agents/filer');
  const hands = handsOn(page);
  await hands.say('film');
  await hands.tab('Files');
  const file = page.getByRole('button', { name: /^film\.mp4/ });
  await file.click();
  expect(await file.textContent()).toContain('1.0 MB');
  await soon(() => hands.inspector.textContent()).toContain('video/mp4 · 1.0 MB');
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'Download film.mp4' }).click(),
  ]);
  expect(download.suggestedFilename()).toBe('film.mp4');
  expect((await readFile(await download.path())).equals(Buffer.alloc(1_000_000, 7))).toBe(true);
  expect(errors).toEqual([]);
});

/** What makes the page wider than the screen; empty when nothing does. */
function wideIn(page: Page): Promise<readonly string[]> {
  return page.evaluate(() => {
    if (document.documentElement.scrollWidth <= innerWidth) return [];
    return [...document.querySelectorAll('body *')]
      .filter((element) => element.getBoundingClientRect().right > innerWidth + 1)
      .map((element) => `${element.tagName}.${element.className}`);
  });
}

test('text of any script and direction finds its place, 380 pixels wide', async () => {
  const trouble = studio.app.agent('trouble');
  const name = `${'W'.repeat(300)} שלום`;
  const { sessionId } = await trouble.runText('scripts');
  await trouble.runText('echo long', { sessionId });
  const { snapshotId = '' } = await trouble.runText(hostile.scripts, { sessionId });
  await trouble.label(snapshotId, name.slice(0, 120));
  await trouble.updateSession(sessionId, { title: name });
  const { page, errors } = await studio.open(`agents/trouble/${sessionId}`, {
    viewport: { width: 380, height: 760 },
  });
  const hands = handsOn(page);
  await soon(() => hands.messages.textContent()).toContain('שלום עולם');
  for (const details of await hands.messages.locator('details').all()) {
    await details.locator('summary').first().click();
  }
  expect(await wideIn(page)).toEqual([]);
  const directions = await hands.messages
    .locator('.markdown > p', { hasText: /^(שלום עולם|وهذا نص عربي|👩)/ })
    .evaluateAll((all) => all.map((each) => getComputedStyle(each).direction));
  expect(directions).toEqual(['rtl', 'rtl', 'ltr']);
  for (const panel of ['Sessions', 'Timeline', 'Inspector']) {
    await page.getByRole('button', { name: `Show or hide: ${panel}` }).click();
    const sheet = page.locator('.panel[data-sheet]');
    await sheet.waitFor();
    expect([panel, await wideIn(page)]).toEqual([panel, []]);
    const reach = await sheet.evaluate((each) => each.scrollWidth - each.clientWidth);
    expect([panel, reach]).toEqual([panel, 0]);
    await page.keyboard.press('Escape');
    await sheet.waitFor({ state: 'detached' });
  }
  await page.goto(`${studio.url}/studio/#/agents/filer`);
  await page.getByRole('button', { name: 'Agent: filer' }).waitFor();
  await hands.send('files');
  await soon(() => hands.messages.textContent()).toContain('Filed.');
  await page.getByRole('button', { name: 'Show or hide: Inspector' }).click();
  await hands.tab('Files');
  expect(await wideIn(page)).toEqual([]);
  expect(errors).toEqual([]);
});

test('a tool that throws says so, and the turn goes on; a model that fails can be asked again', async () => {
  const { page, errors } = await studio.open('agents/trouble');
  const hands = handsOn(page);
  await hands.say('break it');
  const call = hands.messages.locator('details', { hasText: 'broken' });
  expect(await call.locator('summary').textContent()).toContain('failed');
  await call.locator('summary').click();
  expect(await call.textContent()).toContain('The disk is full.');
  expect(await hands.messages.textContent()).toContain('I got');

  await hands.send('fail now');
  const alert = hands.messages.getByRole('alert');
  await alert.waitFor();
  expect(await hands.messages.textContent()).toContain('half an answer');
  await hands.row(/failed/).waitFor();
  await alert.getByRole('button', { name: 'Try again' }).click();
  await soon(() => hands.row(/failed/).count()).toBe(2);
  await hands.say('table');
  expect(await alert.count()).toBe(0);
  expect(errors).toEqual([]);
});

test('a server that goes away is missed, and found again without a loss', async () => {
  const { page } = await studio.open('agents/trouble');
  const hands = handsOn(page);
  await hands.say('rtl');
  await hands.send('hang on');
  await soon(() => hands.messages.textContent()).toContain('half an answer');
  await hands.field.fill('I was writing');
  await studio.stopServer();
  const alert = page.getByRole('alert').filter({ hasText: 'not answering' });
  await alert.waitFor();
  expect(await page.locator('.live').textContent()).toBe('offline');
  expect(await hands.messages.textContent()).toContain('half an answer');
  expect(await hands.field.inputValue()).toBe('I was writing');
  await studio.startServer();
  await alert.waitFor({ state: 'detached' });
  // The turn went on meanwhile, and is still in these hands.
  await page.getByRole('button', { name: /^Stop/ }).click();
  await soon(() => hands.messages.textContent()).toContain('Stopped.');
  expect(await hands.field.inputValue()).toBe('I was writing');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await hands.settled('I was writing');
  expect(await hands.rows.count()).toBe(3);
});

test('a session that is deleted meanwhile says so, and what one writes begins another', async () => {
  const { page, errors } = await studio.open('agents/story');
  const hands = handsOn(page);
  await hands.say('Look around');
  await hands.field.fill('To the pond');
  const sessionId = /story\/([^/]+)/.exec(page.url())?.[1] ?? '';
  await studio.app.agent('story').deleteSession(sessionId);
  await page.getByText('This session has been deleted.').waitFor();
  expect(await page.getByRole('button', { name: 'Start a new session' }).isVisible()).toBe(true);
  expect(await hands.field.inputValue()).toBe('To the pond');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await hands.settled('To the pond');
  expect(page.url()).not.toContain(sessionId);
  expect(await hands.rows.count()).toBe(1);
  expect(errors.filter((error) => !error.includes('404'))).toEqual([]);
});

test('a sub-agent is heard while it works', async () => {
  const { page, errors } = await studio.open('agents/boss');
  const hands = handsOn(page);
  await hands.send('hang on the line');
  const inside = page.getByRole('region', { name: 'trouble at work' });
  await soon(() => inside.textContent()).toContain('half an answer');
  await page.keyboard.press('Escape');
  await soon(() => hands.messages.textContent()).toContain('Stopped.');
  expect(await inside.count()).toBe(0);
  expect(errors).toEqual([]);
});

test('S146 a failed turn shows what was thrown, with its stack, once', async () => {
  const { page, errors } = await studio.open('agents/thrower');
  const hands = handsOn(page);
  await hands.send('go');
  const note = page.getByRole('alert');
  const stack = note.getByLabel('Error with stack');
  await stack.waitFor();
  await soon(() => stack.textContent()).toMatch(/^TypeError: my bug is here\n {4}at .*app\.ts/);
  expect(((await note.textContent()) ?? '').match(/my bug is here/g)).toHaveLength(1);
  // The file and its line, at the end of each line, are seen without scrolling sideways.
  expect(await stack.evaluate((element) => element.scrollWidth - element.clientWidth)).toBe(0);
  await hands.row(/failed/).click();
  await hands.tab('State');
  await soon(() => hands.inspector.textContent()).toContain('my bug is here');
  await hands.tab('Trace');
  await page.getByRole('button', { name: /^turn 1/ }).click();
  await soon(() => hands.inspector.textContent()).toMatch(/TypeError: my bug is here\n {4}at /);
  // It is kept for this page alone: what clients read does not hold it.
  const [session] = (await studio.app.agent('thrower').listSessions()).items;
  const url = `${studio.url}/agents/thrower/sessions/${session?.sessionId}/snapshots?includeOrphaned=true`;
  const stored = await (await fetch(url)).text();
  expect(stored).toContain('"failed"');
  expect(stored).not.toContain('my bug');
  expect(errors).toEqual([]);
});
