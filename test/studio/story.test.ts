import { afterAll, beforeAll, expect, test } from 'vitest';
import { createStudioApp } from './app.ts';
import { handsOn } from './support/hands.ts';
import { soon } from './support/soon.ts';
import { openStudio, type Studio } from './support/studio.ts';

let studio: Studio;

beforeAll(async () => {
  // A run that lasts long enough to be seen at work, however busy the machine is.
  studio = await openStudio(createStudioApp({ pauseMs: 700 }));
});
afterAll(() => studio?.[Symbol.asyncDispose]());

test('a newcomer talks, approves, restores an earlier turn, branches and compares the two', async () => {
  const { page, errors } = await studio.open();
  const hands = handsOn(page);

  // The empty studio says what to type; a click types it.
  await page.getByRole('button', { name: 'Two days in Lisbon' }).click();
  await hands.settled('Two days in Lisbon');
  await hands.say('I like museums');
  await soon(() => page.title()).toBe('Two days in Lisbon · Waymark');
  expect(await hands.messages.textContent()).toContain('It will be sunny');

  // A tool call folds open.
  const weather = hands.messages.locator('details', { hasText: 'weather' });
  await weather.locator('summary').first().click();
  expect(await weather.textContent()).toContain('sky');

  // The inspector opens on what this turn changed.
  await soon(() => hands.inspector.textContent()).toContain('topics[1]');

  // The booking asks first, in a form made from the tool's schema.
  await hands.send('Book a small hotel');
  const card = page.getByRole('group', { name: 'book needs your approval' });
  expect(await card.textContent()).toContain('Book a small hotel for 120 €?');
  expect(await card.locator('dl').textContent()).toBe('Whata small hotelEuros120');
  await card.getByRole('button', { name: 'Approve' }).click();
  await hands.settled('Answered book');
  expect(await hands.messages.textContent()).toContain('Booked: a small hotel');

  // Two turns back: looking changes nothing.
  await hands.press('k', 'k');
  await hands.pastBar.waitFor();
  expect(await hands.pastBar.textContent()).toContain('Turn 2 of 4');
  await soon(() => hands.messages.textContent()).not.toContain('Booked');
  expect(await hands.row(/Answered book.*head/).count()).toBe(1);
  await page.keyboard.press('r');
  await hands.row(/I like museums.*head/).waitFor();
  await hands.row(/Answered book.*another branch/).waitFor();

  // Another branch.
  await hands.say('I like music');
  expect(await hands.rows.count()).toBe(5);
  expect(await page.locator('aside[data-panel=timeline]').textContent()).toContain('2 branches');

  // A flag.
  await hands.press('L');
  await page.getByLabel('Label', { exact: true }).fill('the cheap way');
  await page.keyboard.press('Enter');
  await hands.row(/labelled the cheap way/).waitFor();

  // The two ways side by side: the other branch is on the right, its end one further down.
  await hands.press('l', 'j', 'c');
  await hands.comparison.waitFor();
  await soon(() => hands.comparison.textContent()).toContain('The same up to 8 messages');
  const columns = hands.comparison.locator('.compare-column');
  expect(await columns.nth(0).textContent()).toContain('Book a small hotel');
  expect(await columns.nth(1).textContent()).toContain('I like music');
  expect(await hands.comparison.textContent()).toContain('booked[0]');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await hands.comparison.waitFor({ state: 'detached' });

  // Going back can itself be taken back.
  await hands.press('k', 'r');
  await page.getByRole('button', { name: 'Undo' }).click();
  await hands.row(/I like music.*head/).waitFor();
  expect(errors).toEqual([]);
});

test('background work continues over a reload, is watched to its end, and another is aborted', async () => {
  const { page, errors } = await studio.open('agents/researcher');
  const hands = handsOn(page);
  await hands.field.fill('lighthouses');
  await page.getByRole('button', { name: 'Send in background' }).click();
  const runs = page.getByRole('region', { name: 'Runs' });
  await soon(() => runs.textContent()).toMatch(/researcher.*[1-4]\/5/s);

  await page.reload();
  await hands.row(/lighthouses.*head/).waitFor();
  await soon(() => hands.messages.textContent()).toContain(
    'The maps have something on “lighthouses”.',
  );
  await hands.tab('Files');
  await soon(() => hands.inspector.textContent()).toContain('findings.md');

  // One that never comes to an end by itself.
  await page.goto(`${studio.url}/studio/#/agents/trouble`);
  await page.getByRole('button', { name: 'Agent: trouble' }).waitFor();
  await hands.field.fill('hang about');
  await page.getByRole('button', { name: 'Send in background' }).click();
  await page.getByRole('link', { name: /^Runs/ }).click();
  const card = page.getByRole('region', { name: 'Active' }).locator('.run-card');
  await card.getByRole('button', { name: 'Watch' }).click();
  await soon(() => card.textContent()).toContain('half an answer');
  await card.getByRole('button', { name: 'Abort' }).click();
  const ended = page.getByRole('region', { name: 'Ended' });
  await soon(() => ended.textContent()).toContain('aborted after');
  await ended.getByRole('link').first().click();
  await hands.row(/aborted in the background/).waitFor();
  expect(errors).toEqual([]);
});

test('an earlier message is written anew, which makes a branch, and a branch becomes a session', async () => {
  const { page, errors } = await studio.open('agents/story');
  const hands = handsOn(page);
  await hands.say('Look around');
  await hands.say('To the pond');
  await hands.messages.getByRole('button', { name: 'Edit and resend: To the pond' }).click();
  await page.getByLabel('Edit message').fill('Climb the tower');
  await page.keyboard.press('Enter');
  await hands.settled('Climb the tower');
  await hands.row(/To the pond.*another branch/).waitFor();

  // From the other branch a session of its own.
  await hands.row(/To the pond/).click();
  await hands.pastBar.getByRole('button', { name: 'Fork' }).click();
  await soon(() => page.getByRole('heading', { level: 1 }).textContent()).toContain('(fork)');
  expect(await hands.messages.textContent()).toContain('The water is black');
  await page.getByRole('link', { name: 'forked' }).click();
  await hands.row(/Climb the tower.*head/).waitFor();
  expect(errors).toEqual([]);
});

test('S720 the first message is written anew in the same session', async () => {
  const { page, errors } = await studio.open('agents/story');
  const hands = handsOn(page);
  await hands.say('Look around');
  const url = page.url();
  await hands.messages.getByRole('button', { name: 'Edit and resend: Look around' }).click();
  await page.getByLabel('Edit message').fill('Climb the tower');
  await page.keyboard.press('Enter');
  await hands.settled('Climb the tower');
  await hands.row(/Look around.*another branch/).waitFor();
  await hands.row(/Climb the tower.*head/).waitFor();
  expect(page.url()).toBe(url);
  expect(errors).toEqual([]);
});

test('a running turn is stopped by Escape and keeps what it said; search finds the session', async () => {
  const { page, errors } = await studio.open('agents/trouble');
  const hands = handsOn(page);
  await hands.send('hang on the line');
  await soon(() => hands.messages.textContent()).toContain('half an answer');
  expect(await hands.row(/running/).count()).toBe(1);
  await page.keyboard.press('Escape');
  await soon(() => hands.messages.textContent()).toContain('Stopped.');
  await page.getByRole('button', { name: 'New session' }).click();
  await hands.say('rtl');
  await hands.press('/');
  await page.keyboard.type('hang on');
  const sessions = page.getByRole('navigation', { name: 'Sessions' }).getByRole('listitem');
  await soon(() => sessions.allTextContents()).toEqual([expect.stringContaining('hang on')]);
  await sessions.first().getByRole('link').click();
  await soon(() => hands.messages.textContent()).toContain('half an answer');
  expect(errors).toEqual([]);
});

test('a trace tells what a turn did, and the state tree marks what it changed', async () => {
  const { page, errors } = await studio.open('agents/trip-planner');
  const hands = handsOn(page);
  await hands.say('Two days in Bergen');
  await hands.tab('Trace');
  await soon(() => hands.inspector.textContent()).toContain('tool weather');
  await hands.inspector.getByRole('button', { name: /tool weather/ }).click();
  expect(await hands.inspector.textContent()).toContain('gen_ai.tool.name');
  await hands.tab('State');
  expect(await hands.inspector.locator('.changed').allTextContents()).toContain(
    'cityBergenchanged',
  );
  expect(errors).toEqual([]);
});
