import { appendFileSync, statSync } from 'node:fs';
import type { Clock } from '../../src/core/time.ts';
import { clockAhead } from './movable-clock.ts';

const stepMs = 1000;

/** A clock that several processes read and a test moves forward, for stores without a clock of their own. */
export interface SharedClock {
  readonly clock: Clock;
  /** Moves the clock of every process that has opened the same file. */
  advance(ms: number): void;
}

/** Opens the clock whose offset is the length of this file: an append is atomic, so no process reads half an offset. */
export function sharedClock(file: string): SharedClock {
  return {
    clock: clockAhead(() => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) * stepMs),
    advance: (ms) => appendFileSync(file, 'x'.repeat(Math.ceil(ms / stepMs))),
  };
}
