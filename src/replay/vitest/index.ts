import { expect } from 'vitest';
import type { ReplayReport, TurnReport } from '../report.ts';
import { matchRecording } from './match-recording.ts';

export { matchRecording } from './match-recording.ts';

/** The actual value of `toMatchRecording`: a turn of a report, or a whole report. */
type Replayed = TurnReport | ReplayReport;

interface RecordingMatchers<Result> {
  /** No difference from the recording, apart from the kinds and paths that are ignored. */
  toMatchRecording(options?: { readonly ignore?: readonly string[] }): Result;
}

declare module 'vitest' {
  // Merged with the declaration of Vitest 5, so the parameters are the same.
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown>
    extends RecordingMatchers<R> {}
}

expect.extend({
  toMatchRecording(received: Replayed, options?: { readonly ignore?: readonly string[] }) {
    return matchRecording(received, options);
  },
});
