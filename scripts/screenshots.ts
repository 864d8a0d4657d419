/**
 * Makes the pictures of the studio in docs/images: builds the studio, lets the examples talk on the scripted model, goes back
 * and takes another way, and takes a screenshot, light and dark. `npm run build` first; then `node scripts/screenshots.ts`.
 */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';
import { memoryStore, waymark } from 'waymark';
import { serve } from 'waymark/server';
import { defineStory } from '../examples/story.ts';
import { defineTripPlanner } from '../examples/trip-planner.ts';
import { defineWriter } from '../examples/writer.ts';
import { findChromium } from '../test/browser/support/find-chromium.ts';

const root = resolve(import.meta.dirname, '..');
const images = join(root, 'docs/images');
mkdirSync(images, { recursive: true });

const app = waymark({ store: memoryStore() });
const planner = defineTripPlanner(app);
defineStory(app);
defineWriter(app);

const first = await planner.runText('Two days in Lisbon');
const { sessionId } = first;
const second = await planner.runText('I like museums', { sessionId });
await planner.runText('What is the weather in Kyoto?', { sessionId });
if (second.snapshotId !== undefined) {
  await planner.label(second.snapshotId, 'good');
  await planner.runText('I like food', { snapshotId: second.snapshotId });
}
await planner.runText('Book a small hotel', { sessionId });
await planner.updateSession(sessionId, { title: 'Trip to Lisbon' });

const server = await serve(app, { port: 0, studio: join(root, 'dist/studio'), log: () => {} });
const browser = await chromium.launch({
  executablePath: await findChromium(),
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});
try {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 }, colorScheme });
    await page.goto(`${server.url}/studio/#/agents/trip-planner/${sessionId}`);
    await page.waitForTimeout(1_500);
    await page.screenshot({ path: join(images, `studio-${colorScheme}.png`) });
    await page.setViewportSize({ width: 380, height: 800 });
    await page.waitForTimeout(500);
    await page.screenshot({ path: join(images, `studio-${colorScheme}-narrow.png`) });
    await page.close();
  }
} finally {
  await browser.close();
  await server.close();
  await app.close({ grace: 100 });
}
console.log(`Pictures are in ${images.slice(root.length + 1)}.`);
