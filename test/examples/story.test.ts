import { expect, test } from 'vitest';
import { memoryStore, type Output, waymark } from 'waymark';
import { defineStory } from '../../examples/story.ts';

const open = () => defineStory(waymark({ store: memoryStore() }));
const textOf = ({ message }: Output): string =>
  (message?.content ?? []).map((part) => ('text' in part ? part.text : '')).join('');

test('two ways from one turn stand side by side and can be compared', async () => {
  const story = open();
  const chat = story.chat();
  await chat.send('Look around');
  const fork = chat.snapshotId ?? '';
  await chat.send('To the pond');
  const first = chat.snapshotId ?? '';
  await story.restore(fork);
  const second = (await story.runText('Take the lantern', { snapshotId: fork })).snapshotId ?? '';

  const diff = await story.diff(first, second);
  expect(diff.custom).toEqual(
    expect.arrayContaining([
      { op: 'replace', path: '/place', value: 'gate' },
      { op: 'add', path: '/carrying/0', value: 'lantern' },
    ]),
  );
  const { items } = await story.listSnapshots(chat.sessionId ?? '', { includeOrphaned: true });
  expect(items.map(({ snapshotId, orphaned }) => [snapshotId, orphaned])).toEqual([
    [fork, false],
    [first, true],
    [second, false],
  ]);
});

test('the story has an end, for whoever takes the right things along', async () => {
  const chat = open().chat();
  for (const step of ['Take the lantern', 'Walk to the pond', 'Dive']) await chat.send(step);
  expect(textOf((await chat.send('Climb the tower')) as Output)).toContain('**The end.**');
  expect(chat.snapshotId).toBeDefined();
});

test('without the lantern it is dark, and going back helps', async () => {
  const story = open();
  const chat = story.chat();
  await chat.send('Walk to the pond');
  await chat.send('Dive');
  const below = chat.snapshotId ?? '';
  expect(textOf((await chat.send('Climb the tower')) as Output)).toContain('it is dark');
  const lit = (await story.runText('Take the lantern', { snapshotId: below })) as Output;
  const end = (await story.runText('Climb the tower', { sessionId: lit.sessionId })) as Output;
  expect(textOf(end)).toContain('**The end.**');
});
