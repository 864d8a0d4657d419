import { evalite } from 'evalite';
import { replay, scriptedModelFrom } from 'waymark/replay';
import { recordedApp } from './recorded-app.ts';

const { app, session } = await recordedApp();

evalite('stored session', {
  data: async () => {
    const { turns } = await replay(app, {
      sessions: session,
      with: { model: scriptedModelFrom(session) },
    });
    return turns.map((turn) => ({ input: turn, expected: turn.recorded.text }));
  },
  task: async (turn) => turn.replayed.text,
  scorers: [
    {
      name: 'as recorded',
      scorer: ({ input, output, expected }) =>
        output === expected && input.divergences.length === 0 ? 1 : 0,
    },
  ],
});
