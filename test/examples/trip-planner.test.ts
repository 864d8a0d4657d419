import { expect, test } from 'vitest';
import { memoryStore, type Output, waymark } from 'waymark';
import { defineTripPlanner } from '../../examples/trip-planner.ts';

const open = () => defineTripPlanner(waymark({ store: memoryStore() }));
const textOf = ({ message }: Output): string =>
  (message?.content ?? []).map((part) => ('text' in part ? part.text : '')).join('');
const restart = (output: Output, resumed: boolean | { approved: boolean }) => ({
  resume: {
    restart: (output.message?.content ?? []).flatMap((part) =>
      'toolRequest' in part ? [{ toolRequest: part.toolRequest, metadata: { resumed } }] : [],
    ),
  },
});

test('a plan uses two tools at once and lands in the state', async () => {
  const planner = open();
  const output = (await planner.runText('Two days in Lisbon')) as Output;
  expect(textOf(output)).toContain('**sunny**');
  const session = await planner.getSession(output.sessionId);
  expect(session?.state?.custom).toEqual({
    city: 'Lisbon',
    days: 2,
    topics: ['walking'],
    booked: [],
  });
});

test('a booking waits for a person; approved it is made, once', async () => {
  const planner = open();
  const asked = (await planner.runText('Book a small hotel')) as Output;
  expect(asked.finishReason).toBe('interrupted');
  const place = { sessionId: asked.sessionId };
  const booked = (await planner.run(restart(asked, { approved: true }), place)) as Output;
  expect(textOf(booked)).toMatch(/Booked: a small hotel \(reference `\w{8}`\)/);
  const snapshotId = asked.snapshotId ?? '';
  await expect(planner.run(restart(asked, true), { snapshotId })).rejects.toMatchObject({
    status: 'FAILED_PRECONDITION',
  });
  expect((await planner.getSession(asked.sessionId))?.state?.custom?.booked).toEqual([
    'a small hotel',
  ]);
});

test('a booking that is not approved pays nothing', async () => {
  const planner = open();
  const asked = (await planner.runText('Book a small hotel')) as Output;
  const place = { sessionId: asked.sessionId };
  const declined = (await planner.run(restart(asked, { approved: false }), place)) as Output;
  expect(textOf(declined)).toContain('I leave it at that');
  const left = (await planner.runText('No.', place)) as Output;
  expect(textOf(left)).toContain('I leave it at that');
  expect((await planner.getSession(asked.sessionId))?.state?.custom?.booked).toEqual([]);
});
