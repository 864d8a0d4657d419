import { expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import type { Engine } from 'waymark/engine';
import { scriptedModel } from 'waymark/testing';
import { findBarriers } from './support/axe.ts';
import { openStudio } from './support/studio.ts';

/** An engine whose queue has given one run up; begun again, that one works. */
function engineWithDeadRun(dead: { agent: string; sessionId: string; snapshotId: string }): Engine {
  let isDead = true;
  return {
    name: 'queue',
    dispatcher: {
      admit: async () => {},
      handOver: () => ({ worker: 'queue' }),
      deadRuns: async ({ agent }) =>
        isDead && agent === dead.agent
          ? [
              {
                ...dead,
                since: '2026-01-02T03:04:05.000Z',
                attempts: [
                  { attempt: 1, error: 'Its worker was killed (SIGKILL).' },
                  { attempt: 2, error: 'Its worker ran out of memory.' },
                ],
              },
            ]
          : [],
      retry: async () => {
        isDead = false;
        return dead;
      },
    },
    attach() {},
    start() {},
    stop() {},
    recover: async () => 0,
    status: async () => ({ engine: 'queue', running: 0 }),
  };
}

test('runs that were given up are shown with what went wrong each time, and begun again', async () => {
  const snapshotId = '01980000-0000-7000-8000-000000000001';
  const dead = { agent: 'heavy', sessionId: 'sorting', snapshotId };
  const app = waymark({ store: memoryStore(), engine: engineWithDeadRun(dead) });
  app.defineAgent({ name: 'heavy', model: scriptedModel([]) });
  await using studio = await openStudio(app);
  const { page, errors } = await studio.open('runs');
  const section = page.getByRole('region', { name: 'Dead runs' });
  await section.waitFor();
  expect(await section.textContent()).toContain('after 2 attempts');
  expect(
    await section.getByRole('listitem').filter({ hasText: 'Attempt 2' }).last().textContent(),
  ).toBe('Attempt 2 Its worker ran out of memory.');
  expect(await section.getByRole('link', { name: /heavy/ }).getAttribute('href')).toContain(
    'sorting',
  );
  expect(await findBarriers(page)).toEqual([]);
  await section.getByRole('button', { name: 'Retry heavy' }).click();
  await section.waitFor({ state: 'detached' });
  await page.getByText('Retried, with its remaining inputs.').waitFor();
  expect(errors).toEqual([]);
});
