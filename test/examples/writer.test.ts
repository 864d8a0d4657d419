import { expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { defineWriter } from '../../examples/writer.ts';

test('a piece is written in files; a second draft takes the place of the first, which is still there', async () => {
  const writer = defineWriter(waymark({ store: memoryStore() }));
  const phases: string[] = [];
  const { stream, output } = writer.streamText('Lighthouses');
  for await (const { status } of stream) if (status) phases.push(status.phase);
  const first = await output;
  expect(phases).toEqual(['outlining', 'drafting', 'done']);
  expect(first.artifacts?.map(({ name }) => name)).toEqual(['outline.md', 'draft.md']);

  const second = await writer.runText('Lighthouses, again', { sessionId: first.sessionId });
  expect(second.artifacts).toHaveLength(2);
  expect(second.artifacts?.[1]).toMatchObject({ name: 'draft.md', metadata: { version: 2 } });
  const before = await writer.getSnapshot({ snapshotId: first.snapshotId ?? '' });
  expect(before?.state?.artifacts?.[1]).toMatchObject({ metadata: { version: 1 } });
  const { artifacts } = await writer.diff(first.snapshotId ?? '', second.snapshotId ?? '');
  expect(artifacts.map(({ name, change }) => `${name} ${change}`)).toEqual([
    'outline.md changed',
    'draft.md changed',
  ]);
});
