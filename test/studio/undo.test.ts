import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';
import { Ledger } from '../support/ledger.ts';
import { findBarriers } from './support/axe.ts';
import { handsOn } from './support/hands.ts';
import { soon } from './support/soon.ts';
import { openStudio, type Studio } from './support/studio.ts';

const hotels = new Ledger();
let studio: Studio;

beforeAll(async () => {
  const model = scriptedModel({
    patterns: [
      [/^book (\w+)/, ([, hotel = '']) => ({ toolCalls: [{ name: 'book', input: { hotel } }] })],
      [/^mail (\w+)/, ([, to = '']) => ({ toolCalls: [{ name: 'mail', input: { to } }] })],
    ],
    afterTools: () => 'Done.',
    otherwise: 'Where would you like to go?',
  });
  const app = waymark({ model, store: memoryStore() });
  const state = z.object({ booked: z.array(z.string()) });
  const book = app.defineTool(
    {
      name: 'book',
      description: 'Books a hotel',
      input: z.object({ hotel: z.string() }),
      output: z.object({ id: z.string() }),
      state,
      undo: ({ output, idempotencyKey }) => hotels.undo(output.id, idempotencyKey),
    },
    ({ hotel }, { session, idempotencyKey }) => {
      session.updateCustom((draft) => void draft.booked.push(hotel));
      return hotels.do(hotel, idempotencyKey);
    },
  );
  const mail = app.defineTool(
    { name: 'mail', description: 'Sends a mail', input: z.object({ to: z.string() }) },
    () => 'sent',
  );
  app.defineAgent({ name: 'desk', state, initialState: { booked: [] }, tools: [book, mail] });
  studio = await openStudio(app);
});
afterAll(() => studio?.[Symbol.asyncDispose]());

// SCREENSHOTS=<folder> keeps pictures of the dialog.
const { SCREENSHOTS: out } = process.env;

test.each(['light', 'dark'] as const)(
  'S763 one dialog shows what a restore undoes before anything happens, in the %s theme',
  async (colorScheme) => {
    const { page, errors } = await studio.open('agents/desk', { colorScheme });
    const hands = handsOn(page);
    const before = hotels.done.size;
    await hands.say('London');
    await hands.say('book Ritz');
    await hands.say('mail Ann');
    const restore = async (): Promise<void> => {
      await hands.row(/London/).click();
      await hands.pastBar.getByRole('button', { name: /^Restore/ }).click();
    };
    await restore();
    const dialog = page.getByRole('dialog', { name: /^Restore turn 1/ });
    const text = (): Promise<string | null> => dialog.textContent();
    await soon(text).toContain('will be undone');
    expect(await text()).toContain('stays');
    expect(await text()).toContain('Ritz');
    expect(await findBarriers(page)).toEqual([]);
    if (out !== undefined) {
      await mkdir(out, { recursive: true });
      await page.screenshot({ path: join(out, `undo-${colorScheme}.png`) });
    }
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(hotels.undone.size).toBe(before);
    await restore();
    await dialog.getByRole('button', { name: 'Undo 1 effect and restore' }).click();
    await dialog.waitFor({ state: 'detached' });
    await hands.row(/London.*head/).waitFor();
    expect(hotels.undone.size).toBe(before + 1);
    // A restore forward warns that the booking stays cancelled.
    await hands.row(/mail Ann/).click();
    await hands.pastBar.getByRole('button', { name: /^Restore/ }).click();
    const forward = page.getByRole('dialog', { name: /^Restore turn 3/ });
    await soon(() => forward.textContent()).toContain('was undone, and is not done again');
    await forward.getByRole('button', { name: 'Restore', exact: true }).click();
    await forward.waitFor({ state: 'detached' });
    expect(hotels.done.size).toBe(before + 1);
    expect(errors).toEqual([]);
  },
);
