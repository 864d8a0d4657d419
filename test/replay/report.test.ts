import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { contains, exact, replay, toHtmlReport } from 'waymark/replay';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';
import { launchChromium } from '../browser/support/chromium.ts';
import { findBarriers } from '../studio/support/axe.ts';

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

test('S428 the HTML report shows both sides, filters turns, and lets no text become markup', async () => {
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
  const path = join(tmpdir(), `waymark-replay-report-${process.pid}.html`);
  await writeFile(path, toHtmlReport(report, { title: 'Another model' }));
  await using chromium = await launchChromium();
  const { page, errors } = await chromium.newPage({ viewport: { width: 1100, height: 900 } });
  await page.goto(pathToFileURL(path).href);
  const shown = () => page.locator('article:visible h2').allTextContents();
  const turns = async () => (await shown()).map((text) => /Turn \d/.exec(text)?.[0]);
  expect(await turns()).toEqual(['Turn 1', 'Turn 2']);
  expect(await page.locator('#count').textContent()).toBe('2 turns');
  await page.selectOption('#kind', '');
  expect(await turns()).toEqual(['Turn 1', 'Turn 2', 'Turn 3']);
  await page.selectOption('#kind', 'toolCall');
  expect(await turns()).toEqual(['Turn 2']);
  const cells = page.locator('article:visible .divergences tbody tr').first().locator('th, td');
  expect(await cells.allTextContents()).toEqual(['/toolCalls/0/input/city', 'Lisbon', 'Porto']);
  await page.selectOption('#kind', '');
  await page.fill('#query', 'quotes');
  expect(await turns()).toEqual(['Turn 3']);
  expect(await page.title()).toBe('Another model');
  await page.fill('#query', '');
  if (process.env.SCREENSHOTS)
    await page.screenshot({
      path: join(process.env.SCREENSHOTS, 'replay-report.png'),
      fullPage: true,
    });
  expect(await findBarriers(page)).toEqual([]);
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await findBarriers(page, 'contrast')).toEqual([]);
  expect(errors).toEqual([]);
});
