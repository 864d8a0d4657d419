import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createStudioApp } from './app.ts';
import { findBarriers } from './support/axe.ts';
import { handsOn } from './support/hands.ts';
import { soon } from './support/soon.ts';
import { stores, type TestStore } from './support/stores.ts';
import { openStudio, type Studio } from './support/studio.ts';

describe.each(['SQLite', 'Postgres'] as const)('with %s', (kind) => {
  let studio: Studio;
  let opened: TestStore;

  beforeAll(async () => {
    opened = await stores[kind]();
    studio = await openStudio(createStudioApp({ store: opened.store }));
  });
  afterAll(async () => {
    await studio?.[Symbol.asyncDispose]();
    await opened?.remove();
  });

  test('the custom state is edited as a branch, checked by its schema, compared, and taken back', async () => {
    const { page, errors } = await studio.open('agents/trip-planner');
    const hands = handsOn(page);
    await hands.say('Two days in Lisbon');
    await hands.tab('State');
    await hands.inspector.getByRole('button', { name: 'Edit the custom state' }).click();
    const dialog = page.getByRole('dialog', { name: 'Edit the custom state' });
    const text = dialog.getByRole('textbox', { name: 'Custom state, as JSON' });
    const before = JSON.parse(await text.inputValue());
    expect(before.city).toBe('Lisbon');
    // Nothing is wrong yet, and nothing looks as if it were.
    const border = (element: Element): string => getComputedStyle(element).borderColor;
    const reason = dialog.getByLabel('Reason (optional)');
    expect(await text.evaluate(border)).toBe(await reason.evaluate(border));
    expect(await findBarriers(page)).toEqual([]);

    // What is not JSON, and what does not fit the schema, is refused and stays in the field.
    await text.fill('{ "city":');
    await dialog.getByRole('button', { name: 'Save as a new snapshot' }).click();
    await soon(() => dialog.getByRole('alert').textContent()).toContain('This is not JSON');
    await text.fill(JSON.stringify({ ...before, city: 7 }));
    await dialog.getByRole('button', { name: 'Save as a new snapshot' }).click();
    await soon(() => dialog.getByRole('alert').textContent()).toContain('city');

    await text.fill(JSON.stringify({ ...before, city: 'Porto' }));
    await dialog.getByLabel('Reason (optional)').fill('The guest changed plans.');
    await dialog.getByRole('button', { name: 'Save as a new snapshot' }).click();
    await dialog.waitFor({ state: 'detached' });
    await hands.row(/Edited state.*head/).waitFor();
    await hands.comparison.waitFor();
    await soon(() => hands.comparison.textContent()).toContain('Porto');
    const agent = studio.app.agents().find(({ name }) => name === 'trip-planner');
    const sessions = await agent?.listSessions();
    const head = await agent?.getSnapshot({ sessionId: sessions?.items[0]?.sessionId ?? '' });
    expect(head).toMatchObject({
      event: 'edit',
      edit: { reason: 'The guest changed plans.' },
      state: { custom: { ...before, city: 'Porto' } },
    });

    // The next turn continues from the edit; Undo of the edit leaves it as another branch.
    await page.keyboard.press('Escape');
    await hands.comparison.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Undo' }).click();
    await hands.row(/Two days in Lisbon.*head/).waitFor();
    await hands.row(/Edited state.*another branch/).waitFor();
    // The edit that did not fit the schema.
    expect(errors).toEqual([expect.stringContaining('400')]);
  });

  test('an edit does not move the head past turns that came while it was written or saved', async () => {
    const planner = studio.app.agent('trip-planner');
    const { sessionId } = await planner.runText('Two days in Lisbon');
    const headOf = async () => (await planner.getSession(sessionId))?.headId;
    const { page } = await studio.open(`agents/trip-planner/${sessionId}`);
    const hands = handsOn(page);
    await hands.tab('State');
    const button = hands.inspector.getByRole('button', { name: 'Edit the custom state' });
    const dialog = page.getByRole('dialog', { name: 'Edit the custom state' });
    const text = dialog.getByRole('textbox', { name: 'Custom state, as JSON' });
    const save = dialog.getByRole('button', { name: 'Save as a new snapshot' });
    await button.click();
    const edited = JSON.stringify({ ...JSON.parse(await text.inputValue()), city: 'Porto' });
    await text.fill(edited);
    const second = await planner.runText('I like museums', { sessionId });
    await save.click();
    await soon(() => dialog.getByRole('alert').textContent()).toContain(
      'Not saved: the session has',
    );
    expect(await text.inputValue()).toBe(edited);
    expect(await headOf()).toBe(second.snapshotId);

    // A turn that comes right after the edit stays the head.
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await hands.row(/I like museums.*head/).waitFor();
    let third: string | undefined;
    await page.route('**/edit', async (route) => {
      const response = await route.fetch();
      third = (await planner.runText('And food', { sessionId })).snapshotId;
      await route.fulfill({ response });
    });
    await button.click();
    await text.fill(edited);
    await save.click();
    await dialog.waitFor({ state: 'detached' });
    await hands.row(/And food.*head/).waitFor();
    expect(await headOf()).toBe(third);
  });

  test('a text file is edited; other files have no editor', async () => {
    const { page, errors } = await studio.open('agents/filer');
    const hands = handsOn(page);
    await hands.say('file it');
    await hands.tab('Files');
    await hands.inspector.getByRole('button', { name: /^notes\.md/ }).click();
    await hands.inspector.getByRole('button', { name: 'Edit notes.md' }).click();
    const dialog = page.getByRole('dialog', { name: 'Edit notes.md' });
    await dialog.getByRole('textbox', { name: 'Text' }).fill('Only this.');
    await dialog.getByRole('button', { name: 'Save as a new snapshot' }).click();
    await hands.row(/Edited state.*head/).waitFor();
    await page.keyboard.press('Escape');
    await hands.inspector.getByRole('button', { name: /^notes\.md/ }).click();
    await hands.inspector.getByRole('button', { name: 'Source' }).click();
    await soon(() => hands.inspector.textContent()).toContain('Only this.');
    await hands.inspector.getByRole('button', { name: /^dot\.png/ }).click();
    await hands.inspector.getByRole('button', { name: 'Download dot.png' }).waitFor();
    expect(await hands.inspector.getByRole('button', { name: 'Edit dot.png' }).count()).toBe(0);
    expect(errors).toEqual([]);
  });

  test('the inbox lists the open interrupts of all sessions and agents, and takes the answers', async () => {
    const { page, errors } = await studio.open('agents/trip-planner');
    const hands = handsOn(page);
    await hands.send('Book a small hotel');
    await page.getByRole('group', { name: 'book needs your approval' }).waitFor();
    const trouble = studio.app.agents().find(({ name }) => name === 'trouble');
    const asked = await trouble?.run('ask me');
    await page.getByRole('link', { name: /Inbox\s*2/ }).click();
    const cards = page.getByRole('main', { name: 'Inbox' }).locator('.run-card');
    await soon(() => cards.count()).toBe(2);
    expect(await cards.first().textContent()).toMatch(/trip-planner · waits for/);
    expect(await findBarriers(page)).toEqual([]);

    await cards.first().getByRole('button', { name: 'Approve' }).click();
    await soon(() => cards.count()).toBe(1);
    const form = cards.first();
    await form.getByLabel(/colour/i).selectOption('green');
    await form.getByLabel(/amount/i).fill('3');
    await form.getByRole('button', { name: 'Send the answer' }).click();
    await page.getByText('Nothing is waiting for you.').waitFor();
    const session = await trouble?.getSession(asked?.sessionId ?? '');
    expect(session?.text).toContain('"colour":"green"');
    expect(errors).toEqual([]);
  });

  test('a turn runs again with changes beside the original, and is discarded or kept', async () => {
    const { page, errors } = await studio.open('agents/trip-planner');
    const hands = handsOn(page);
    await hands.say('Two days in Oslo');
    await hands.say('I like museums');
    const runAgain = async (): Promise<void> => {
      await hands.messages.getByRole('button', { name: 'Run again with…: turn 2' }).click();
      const dialog = page.getByRole('dialog', { name: 'Run turn 2 again with…' });
      await dialog.getByLabel('System prompt').fill('Answer in one word.');
      await dialog.getByLabel('Temperature').fill('0.2');
      await dialog.getByRole('button', { name: 'Run and compare' }).click();
      await dialog.waitFor({ state: 'detached' });
      await hands.comparison.waitFor();
    };
    const bar = page.getByRole('region', { name: 'Replay' });
    await runAgain();
    await soon(() => hands.comparison.textContent()).toContain('Now');
    expect(await findBarriers(page)).toEqual([]);
    await bar.getByRole('button', { name: 'Discard' }).click();
    await hands.row(/I like museums.*head/).waitFor();
    const agent = studio.app.agents().find(({ name }) => name === 'trip-planner');
    const titles = async (): Promise<(string | undefined)[]> =>
      ((await agent?.listSessions())?.items ?? []).map(({ title }) => title);
    await soon(titles).not.toContain('Two days in Oslo (replay)');

    await runAgain();
    await bar.getByRole('button', { name: 'Keep it' }).click();
    await bar.waitFor({ state: 'detached' });
    expect(await titles()).toContain('Two days in Oslo (replay)');
    expect(errors).toEqual([]);
  });

  test('a rerun stops when its dialog is closed, and leaves the next dialog alone', async () => {
    const { page, errors } = await studio.open('agents/trip-planner');
    const hands = handsOn(page);
    await hands.say('Two days in Rome');
    const stopped = page.waitForEvent('requestfailed', (request) =>
      request.url().includes('rerun'),
    );
    const answers: (() => Promise<void>)[] = [];
    await page.route('**/studio/rerun', (route) => {
      answers.push(() => route.fulfill({ json: { sessionId: 'elsewhere', turns: 1 } }));
    });
    await hands.messages.getByRole('button', { name: 'Run again with…: turn 1' }).click();
    const rerun = page.getByRole('dialog', { name: 'Run turn 1 again with…' });
    await rerun.getByRole('button', { name: 'Run and compare' }).click();
    await soon(async () => answers.length).toBe(1);
    await rerun.getByRole('button', { name: 'Cancel' }).click();
    await rerun.waitFor({ state: 'detached' });
    await stopped;
    const address = page.url();
    await hands.tab('State');
    await hands.inspector.getByRole('button', { name: 'Edit the custom state' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit the custom state' });
    await edit.getByRole('textbox', { name: 'Custom state, as JSON' }).fill('my text');
    // The browser no longer waits for the answer.
    await answers[0]?.().catch(() => {});
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(resolve)));
    expect(await edit.getByRole('textbox', { name: 'Custom state, as JSON' }).inputValue()).toBe(
      'my text',
    );
    expect(page.url()).toBe(address);
    expect(errors).toEqual([]);
  });

  test('sessions are filtered by what needs attention, with counts', async () => {
    const trouble = studio.app.agents().find(({ name }) => name === 'trouble');
    await trouble?.run('table of things');
    await trouble?.run('fail now', { throwOnError: false });
    const named = await trouble?.run('rtl please');
    await trouble?.label(named?.snapshotId ?? '', 'nice');
    const { page, errors } = await studio.open('agents/trouble');
    const filters = page.getByRole('group', { name: 'Show sessions' });
    await filters.getByRole('button', { name: /Failed\s*1/ }).click();
    const sessions = page.getByRole('navigation', { name: 'Sessions' }).getByRole('listitem');
    await soon(() => sessions.allTextContents()).toEqual([expect.stringContaining('fail now')]);
    // The list follows its filters, and does not stand at the foot of the column.
    const filtersBox = await filters.boundingBox();
    const firstBox = await sessions.first().boundingBox();
    const gap = (firstBox?.y ?? 0) - (filtersBox?.y ?? 0) - (filtersBox?.height ?? 0);
    expect(gap).toBeGreaterThanOrEqual(0);
    expect(gap).toBeLessThan(30);
    await filters.getByRole('button', { name: /Labelled\s*1/ }).click();
    await soon(() => sessions.allTextContents()).toEqual([expect.stringContaining('rtl please')]);
    expect(await findBarriers(page)).toEqual([]);
    await filters.getByRole('button', { name: 'All' }).click();
    await soon(() => sessions.count()).toBeGreaterThan(2);
    expect(errors).toEqual([]);
  });
});
