import { z } from 'zod';
import { app } from '../../given/waymark.ts';

// #region task
const state = z.object({ likes: z.array(z.string()) });
const input = z.object({ what: z.string() });
const note = app.defineTool(
  { name: 'note', description: 'Notes a taste', input, state },
  ({ what }, { session }) => session.updateCustom(({ likes }) => ({ likes: [...likes, what] })),
);
const planner = app.defineAgent({
  name: 'planner',
  tools: [note],
  state,
  initialState: { likes: [] },
});
const answer = await planner.run('I like museums');
const session = await planner.getSession(answer.sessionId);
console.log(session?.state?.custom?.likes);
// #endregion
