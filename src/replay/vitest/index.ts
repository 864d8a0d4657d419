/**
 * A matcher for Vitest that compares a recorded session with a replay.
 *
 * @module
 */

import { expect } from 'vitest';
import { matchRecording } from './match-recording.ts';

export { matchRecording } from './match-recording.ts';

interface RecordingMatchers<Result> {
  /** No difference from the recording, apart from the kinds and paths that are ignored. */
  toMatchRecording(options?: Parameters<typeof matchRecording>[1]): Result;
}

declare module 'vitest' {
  // Merged with the declaration of Vitest 5, so the parameters are the same.
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown>
    extends RecordingMatchers<R> {}
}

expect.extend({ toMatchRecording: matchRecording });
