import { expect, test } from 'vitest';
import type { ToolContext } from '../generate/tool/tool-context.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { progressStream } from './call-tool.ts';

test('S730 progress is streamed at most every 100 ms, and the last report always, in order', async () => {
  const clock = fakeClock();
  const seen: unknown[] = [];
  const context = { stream: (output) => void seen.push(output) } as Partial<ToolContext>;
  const stream = progressStream(clock, context as ToolContext);
  const report = (...steps: number[]): void => {
    for (const progress of steps) stream.report({ progress });
  };
  const shown = (...steps: number[]): void =>
    expect(seen).toEqual(steps.map((progress) => ({ progress })));
  report(1, 2, 3);
  shown(1);
  await clock.advance(99);
  shown(1);
  await clock.advance(1);
  shown(1, 3);
  report(4);
  await clock.advance(100);
  shown(1, 3, 4);
  await clock.advance(500);
  report(5, 6);
  shown(1, 3, 4, 5);
  stream.end();
  shown(1, 3, 4, 5, 6);
  expect(clock.waiting).toBe(0);
});
