import { createKeyedEmitter } from '../../../core/async/emitter.ts';
import type { Clock } from '../../../core/time.ts';
import { type Driver, hintKey } from './driver.ts';

/** How often listeners look for changes of other processes, in milliseconds. */
const pollInterval = 1_000;

interface PolledHints extends Pick<Driver, 'tell' | 'listen'> {
  /** Stops looking. */
  close(): void;
}

/**
 * Hints for a database without notifications: at once within this process, and every second for changes of others, while there are
 * listeners. Each then looks whether something has changed.
 */
export function polledHints(clock: Clock): PolledHints {
  const emitter = createKeyedEmitter(hintKey);
  let stop: (() => void) | undefined;
  const close = (): void => {
    stop?.();
    stop = undefined;
  };
  return {
    tell(hints) {
      for (const hint of hints) emitter.emit(hint);
    },
    listen(hint, listener) {
      const leave = emitter.subscribe(hint, listener);
      // Ends by itself, so that consecutive turns do not start it again and again.
      stop ??= clock.every(pollInterval, () => (emitter.size > 0 ? emitter.emitAll() : close()));
      return leave;
    },
    close,
  };
}
