import { expect } from 'vitest';
import { createHarness, createJudge, describeEval } from 'vitest-evals';
import { type ReplayReport, recordedSession, replay, scriptedModelFrom } from 'waymark/replay';
import 'waymark/replay/vitest';
import { recordedApp } from './recorded-app.ts';

const { app, session } = await recordedApp();

/** Replays one turn of the session. */
const harness = createHarness<number, string>({
  name: 'waymark replay',
  run: async ({ input: turnIndex }) => {
    const report: ReplayReport = await replay(app, {
      sessions: session,
      with: { model: scriptedModelFrom(session) },
    });
    expect(report).toMatchRecording();
    const text = report.turns[turnIndex]?.replayed.text ?? '';
    return { output: text, events: [{ type: 'message', role: 'assistant', content: text }] };
  },
});

const sameAsRecorded = createJudge<number, string>('SameAsRecorded', ({ input, output }) => {
  const recorded = recordedSession(session).turns[input]?.messages.at(-1);
  return { score: JSON.stringify(recorded).includes(output) ? 1 : 0 };
});

describeEval('stored session', { harness, judges: [sameAsRecorded], judgeThreshold: 1 }, (it) => {
  it.for([0, 1])('turn %s is answered as recorded', async (turnIndex, { run }) => {
    const result = await run(turnIndex);
    expect(result.output).toBe(['Hello, Ada.', 'Yes.'][turnIndex]);
  });
});
