import { expect } from 'vitest';
import { post, readEvents, type SseEvent, streamTurn, textOf } from './kit.ts';

/** Shows that nothing on the way holds chunks back: they come while the model still waits, until it is stopped. */
export async function streamsPieceByPiece(url: string): Promise<void> {
  const events = readEvents(await streamTurn(url, 'hang'));
  const seen: SseEvent[] = [];
  let snapshotId: unknown;
  for await (const event of events) {
    seen.push(event);
    snapshotId ??= event.data.turnStart?.snapshotId;
    if (textOf([event]) === 'hangs') {
      await post(`${url}/agents/chat/snapshots/${snapshotId}/abort`, {});
    }
  }
  expect(textOf(seen)).toBe('It hangs');
  expect(seen.at(-1)).toMatchObject({ event: 'output', data: { finishReason: 'aborted' } });
}
