import { type Divergence, isIgnored } from '../compare.ts';
import type { ReplayReport, TurnReport } from '../report.ts';

/** Options of {@link matchRecording}. */
interface MatchOptions {
  /** Kinds and paths of differences that do not count, such as `text` or `/custom/updatedAt`. */
  readonly ignore?: readonly string[];
}

/** Whether a replayed turn, or every turn of a report, is as recorded; the message lists the differences. */
export function matchRecording(
  received: TurnReport | ReplayReport,
  { ignore = [] }: MatchOptions = {},
): { readonly pass: boolean; message(): string } {
  const turns = 'turns' in received ? received.turns : [received];
  const lines = turns.flatMap(({ sessionId, turnIndex, divergences }) =>
    divergences
      .filter((divergence) => !isIgnored(divergence, ignore))
      .map((divergence) => `${sessionId} turn ${turnIndex + 1} ${lineOf(divergence)}`),
  );
  // A report without turns says nothing.
  const pass = turns.length > 0 && lines.length === 0;
  return {
    pass,
    message: () => {
      if (pass) return 'Expected the replay to differ from its recording, and nothing does.';
      if (turns.length === 0)
        return 'Expected the replay to match its recording, but no turn was replayed.';
      return `Expected the replay to match its recording:\n${lines.join('\n')}`;
    },
  };
}

function lineOf({ path, recorded, replayed }: Divergence): string {
  const text = (value: unknown): string =>
    value === undefined ? '(nothing)' : JSON.stringify(value).slice(0, 200);
  return `${path}: ${text(recorded)} → ${text(replayed)}`;
}
