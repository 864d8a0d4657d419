import { expect, test } from 'vitest';
import { createChunkTransform } from './transform.ts';

test('S97 an edit whose artifact is not known does not leave an agent with a transform', () => {
  const artifactPatch = { name: 'report', edits: [] } as never;
  const leave = createChunkTransform({ state: (state) => state, chunk: (chunk) => chunk });
  expect(leave({ artifactPatch })).toBeUndefined();
  expect(leave({ artifactPatch, snapshotCreated: 'a' })).toEqual({ snapshotCreated: 'a' });
  expect(createChunkTransform({})({ artifactPatch })).toEqual({ artifactPatch });
});
