import { expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { contains, exact, type ReplayReport, replay } from 'waymark/replay';
import { crashTest, scriptedModel } from 'waymark/testing';
import { z } from 'zod';
import { type World, wrongApp } from '../crash-test/mistakes.ts';
import { findBarriers } from './support/axe.ts';
import { soon } from './support/soon.ts';
import { openStudio } from './support/studio.ts';

const nasty = '<script>document.title = "owned"</script> & "quotes"';

function model(greeting: string, city: string) {
  return scriptedModel({
    patterns: [
      [
        /trip/,
        { text: 'Let me look.', toolCalls: [{ name: 'find_hotels', input: { city, nights: 2 } }] },
      ],
      [/hello/, greeting],
      [/.*/, nasty],
    ],
    afterTools: (_, [result]) => `I found: ${JSON.stringify(result)}`,
    otherwise: '',
  });
}

async function replayed(): Promise<ReplayReport> {
  const app = waymark({
    model: model('Hello.', 'Lisbon'),
    store: memoryStore(),
    onError: () => {},
  });
  const hotels = app.defineTool(
    {
      name: 'find_hotels',
      description: 'Finds.',
      input: z.object({ city: z.string(), nights: z.number() }),
    },
    ({ city }) => [{ name: `Hotel ${city}`, price: 120 }],
  );
  const trip = app.defineAgent({ name: 'trip', tools: [hotels] });
  const { sessionId } = await trip.run('hello');
  await trip.run('Plan a trip for two nights', { sessionId });
  await trip.run('something else', { sessionId });
  const report = await replay(app, {
    sessions: sessionId,
    with: { model: model('Good day.', 'Porto') },
    score: [exact('toolCalls'), contains('text', 'found')],
  });
  await app.close();
  return report;
}

const fileOf = (text: string) => ({
  name: 'report.json',
  mimeType: 'application/json',
  buffer: Buffer.from(text),
});

test('Studio shows the crash points of a crash test, what they repeat, and the repair', async () => {
  const world: World = { charges: [], mails: [nasty] };
  const report = await crashTest(() => wrongApp(world), {
    input: 'Charge order 7',
    effects: () => [...world.charges, ...world.mails],
  });
  await using studio = await openStudio();
  const { page, errors } = await studio.open('runs');
  await page.getByRole('button', { name: 'Command palette' }).click();
  await page.getByRole('option', { name: 'Open a crash test report' }).click();
  await page.getByLabel('Open a report').setInputFiles(fileOf(JSON.stringify(report)));
  await page.getByText('does not survive every one of 24 crashes.').waitFor();
  const titles = page.locator('article h2');
  expect(await titles.allTextContents()).toEqual([
    'Repeated effect',
    'Repeated effect',
    'Lost state',
  ]);
  const rows = page.getByRole('table', { name: 'Crash points' }).locator('tbody tr');
  expect(await rows.count()).toBe(24);
  const cells = rows.nth(5).locator('th, td');
  expect(await cells.allTextContents()).toEqual([
    'after tool charge',
    'model call 1, tool charge({"order":7})',
    '–',
    'as without a crash, with a repeated effect',
  ]);
  await page.getByLabel('Only points with a mistake').check();
  await soon(() => rows.count()).toBe(21);
  expect(await page.title()).not.toBe('owned');
  expect(await findBarriers(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await findBarriers(page, 'contrast')).toEqual([]);
  expect(errors).toEqual([]);
});

test('Studio shows both sides of a report, filters turns, and lets no text become markup', async () => {
  const report = JSON.stringify(await replayed());
  await using studio = await openStudio();
  const { page, errors } = await studio.open('runs');
  await page.getByRole('button', { name: 'Command palette' }).click();
  await page.getByRole('option', { name: 'Open a replay report' }).click();
  const file = page.getByLabel('Open a report');
  await file.setInputFiles(fileOf('{ "turns": 3 }'));
  await page
    .getByText('report.json: This is not the JSON report of a replay or a crash test.')
    .waitFor();
  const requests: string[] = [];
  page.on('request', (request) => requests.push(request.method()));
  await file.setInputFiles(fileOf(report));
  const turns = () =>
    soon(async () =>
      (await page.locator('article h2').allTextContents()).map((text) => /Turn \d/.exec(text)?.[0]),
    );
  await turns().toEqual(['Turn 1', 'Turn 2']);
  await page.getByText('2 of 3 turns differ from their recording.').waitFor();
  await page.getByText('2 turns', { exact: true }).waitFor();
  const differences = page.getByRole('table', { name: 'Differences' });
  const kinds = page.getByRole('combobox', { name: 'Differences' });
  await kinds.selectOption('');
  await turns().toEqual(['Turn 1', 'Turn 2', 'Turn 3']);
  await kinds.selectOption('toolCall');
  await turns().toEqual(['Turn 2']);
  const cells = differences.locator('tbody tr').first().locator('th, td');
  expect(await cells.allTextContents()).toEqual(['/toolCalls/0/input/city', 'Lisbon', 'Porto']);
  const totals = page.getByRole('group', { name: 'Totals' });
  expect(await totals.textContent()).toContain('exact toolCalls0.67');
  await kinds.selectOption('');
  await page.getByLabel('Search the turns').fill('quotes');
  await turns().toEqual(['Turn 3']);
  await page.getByLabel('Search the turns').fill('');
  expect(await page.title()).not.toBe('owned');
  expect(await findBarriers(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await findBarriers(page, 'contrast')).toEqual([]);
  expect(requests.filter((method) => method !== 'GET')).toEqual([]);
  expect(errors).toEqual([]);
});
