import { expect, test } from 'vitest';
import { lastGood, latestFailure } from './failed-turns.ts';

function at(snapshotId: string, parentId?: string, status: 'succeeded' | 'failed' = 'succeeded') {
  return {
    snapshotId,
    ...(parentId !== undefined && { parentId }),
    status,
    createdAt: `2026-01-01T00:00:0${snapshotId}Z`,
  };
}

const timeline = [at('1'), at('2', '1'), at('3', '2', 'failed'), at('4', '3', 'failed')];

test('a session continues from the last good snapshot', () => {
  expect(lastGood(timeline, '2')).toBe('2');
  expect(lastGood(timeline, '4')).toBe('2');
  expect(lastGood([at('1', undefined, 'failed')], '1')).toBeUndefined();
  expect(lastGood(timeline, 'unknown')).toBe('unknown');
});

test('only a failure that came last and belongs to the head counts', () => {
  const failed = [at('1'), at('2', '1', 'failed')];
  expect(latestFailure(failed, '1')?.snapshotId).toBe('2');
  expect(latestFailure([...failed, at('3', '1')], '3')).toBeUndefined();
  expect(latestFailure([at('1', undefined, 'failed')], undefined)?.snapshotId).toBe('1');
  expect(latestFailure(failed, '5')).toBeUndefined();
});
