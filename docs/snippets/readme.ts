import assert from 'node:assert/strict';
import { existsSync, mkdirSync } from 'node:fs';

// The booking service of the README.
const bookings = new Map<string, string>();
const hotels = {
  book(hotel: string, { idempotencyKey }: { idempotencyKey: string }) {
    bookings.set(idempotencyKey, hotel);
    return { id: idempotencyKey };
  },
  cancel: (id: string, _: { idempotencyKey: string }) => bookings.delete(id),
};
mkdirSync('trip', { recursive: true });

// #region undo

import { openai } from '@ai-sdk/openai';
import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { directory, workspaceTools } from 'waymark/workspace';
import { z } from 'zod';

const app = waymark({ model: openai('gpt-5'), store: sqliteStore('waymark.db') });
const book = app.defineTool(
  {
    name: 'book',
    description: 'Books a hotel',
    input: z.object({ hotel: z.string() }),
    output: z.object({ id: z.string() }),
    undo: ({ output, idempotencyKey }) => hotels.cancel(output.id, { idempotencyKey }),
  },
  ({ hotel }, { idempotencyKey }) => hotels.book(hotel, { idempotencyKey }),
);
const planner = app.defineAgent({
  name: 'planner',
  system: 'You plan trips. Write the plan to plan.md.',
  workspace: directory('./trip'),
  tools: [book, workspaceTools()],
});

// #region turns
const start = await planner.run('Two days in Lisbon');
const ritz = await planner.run('Book the Ritz', { sessionId: start.sessionId });

// As after the first turn: conversation, state, files. The booking is cancelled.
await planner.restore(start, { undo: true });

// A second branch from there. Both are kept: compare them.
const plaza = await planner.run('Book the Plaza', { from: start });
const { messages, files } = await planner.diff(ritz, plaza);
// #endregion
assert.deepEqual([...bookings.values()], ['Plaza']);
assert.equal(existsSync('trip/plan.md'), true);
assert.deepEqual(
  files?.map(({ path, change }) => [path, change]),
  [['plan.md', 'changed']],
);
assert.ok(messages.added.length > 0);
await app.close();
