import assert from 'node:assert/strict';
import { scriptedModel } from 'waymark/testing';

const model = scriptedModel({
  patterns: [
    [
      /Book the (\w+)/,
      ([, hotel = 'Ritz']) => ({ toolCalls: [{ name: 'book', input: { hotel } }] }),
    ],
    [/mail (\w+)/, ([, to = 'Ann']) => ({ toolCalls: [{ name: 'mail', input: { to } }] })],
  ],
  afterTools: () => 'Done.',
  otherwise: 'How can I help?',
});

/** The service of a hotel chain. It does nothing twice under one key. */
class Hotels {
  readonly bookings = new Map<string, string>();
  readonly cancelled = new Set<string>();
  book(hotel: string, { idempotencyKey }: { idempotencyKey: string }) {
    this.bookings.set(idempotencyKey, hotel);
    return { bookingId: `${hotel}-${this.bookings.size}` };
  }
  cancel(bookingId: string, _: { idempotencyKey: string }) {
    this.cancelled.add(bookingId);
  }
}
const hotels = new Hotels();

// #region tool

import { memoryStore, waymark } from 'waymark';
import { z } from 'zod';

const app = waymark({ model, store: memoryStore() });

const book = app.defineTool(
  {
    name: 'book',
    description: 'Books a hotel',
    input: z.object({ hotel: z.string() }),
    output: z.object({ bookingId: z.string() }),
    undo: ({ output, idempotencyKey }) => hotels.cancel(output.bookingId, { idempotencyKey }),
  },
  ({ hotel }, { idempotencyKey }) => hotels.book(hotel, { idempotencyKey }),
);
const desk = app.defineAgent({ name: 'desk', tools: [book] });
// #endregion

// #region plan
const first = await desk.run('I need a room in London.');
await desk.run('Book the Ritz', { sessionId: first.sessionId });

const plan = await desk.planUndo(first);
plan.effects; // [{ tool: 'book', input: { hotel: 'Ritz' }, output: { bookingId: 'Ritz-1' }, undo: 'possible', … }]
await desk.restore(first, { undo: plan });
// #endregion
assert.deepEqual(
  plan.effects.map(({ undo }) => undo),
  ['possible'],
);
assert.deepEqual([...hotels.cancelled], ['Ritz-1']);
assert.equal((await desk.getSession(first.sessionId))?.headId, first.snapshotId);

// #region effect
const mail = app.defineTool(
  { name: 'mail', description: 'Sends a mail', input: z.object({ to: z.string() }) },
  ({ to }) => `sent to ${to}`, // a mail cannot be undone
);
const search = app.defineTool(
  { name: 'search', description: 'Searches hotels', effect: 'none' },
  () => ['Ritz', 'Savoy'],
);
const writer = app.defineAgent({ name: 'writer', tools: [book, mail, search] });
// #endregion

const start = await writer.run('Hi');
await writer.run('Book the Savoy', { sessionId: start.sessionId });
await writer.run('mail Ann', { sessionId: start.sessionId });
const refused = await writer.restore(start, { undo: true }).catch((error) => error);
assert.equal(refused.status, 'FAILED_PRECONDITION');

// #region force
const { effects } = await writer.planUndo(start);
const stays = effects.filter(({ undo }) => undo === 'impossible'); // the mail
await writer.restore(start, { undo: true, force: true }); // cancels the booking; the mail stays sent
// #endregion
assert.deepEqual(
  stays.map(({ tool }) => tool),
  ['mail'],
);
assert.equal(hotels.cancelled.size, 2);

// #region steps
const trips = app.defineCustomAgent(
  {
    name: 'trips',
    undo: {
      book: ({ output, idempotencyKey }) => hotels.cancel(String(output), { idempotencyKey }),
    },
  },
  async (session) => {
    await session.run(async ({ message }, { turnIndex }) => {
      if (turnIndex === 0 || message === undefined) return;
      const reserve = () => hotels.book('Plaza', { idempotencyKey: session.id }).bookingId;
      await session.step('plaza', reserve, { undo: 'book', input: { hotel: 'Plaza' } });
    });
  },
);
// #endregion
const trip = await trips.run('Hi');
await trips.run('Go', { sessionId: trip.sessionId });
await trips.restore(trip, { undo: true });
assert.equal(hotels.cancelled.size, 3);

// #region retries
const pay = app.defineTool(
  {
    name: 'pay',
    description: 'Pays an invoice',
    input: z.object({ invoice: z.string() }),
    undo: {
      run: ({ input, idempotencyKey, signal }) => refund(input.invoice, { idempotencyKey, signal }),
      attempts: 3,
      timeout: 10_000,
    },
  },
  ({ invoice }) => `paid ${invoice}`,
);
// #endregion
async function refund(_: string, __: object): Promise<void> {}
assert.ok(pay.undo);
