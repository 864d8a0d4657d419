import { WaymarkError } from '../../core/error.ts';
import type { Clock } from '../../core/time/clock.ts';
import { withTimeout } from '../../core/time/timers.ts';

/**
 * Asks at most once every `keepMs`, and never twice at the same time: however many callers there are, what is asked has one
 * caller. A caller waits no longer than `waitMs`.
 */
export function atMostEvery<T>(
  ask: () => Promise<T>,
  {
    clock,
    keepMs,
    waitMs,
  }: { readonly clock: Clock; readonly keepMs: number; readonly waitMs: number },
): () => Promise<T> {
  let asked: Promise<T> | undefined;
  let answeredAt: number | undefined;
  return async () => {
    if (answeredAt !== undefined && Math.abs(clock.now() - answeredAt) >= keepMs) asked = undefined;
    if (!asked) {
      answeredAt = undefined;
      const answer = ask();
      asked = answer;
      const done = (): void => {
        if (asked === answer) answeredAt = clock.now();
      };
      answer.then(done, done);
    }
    return await withTimeout(asked, {
      clock,
      ms: waitMs,
      error: () => new WaymarkError('DEADLINE_EXCEEDED', `No answer within ${waitMs} ms.`),
    });
  };
}
