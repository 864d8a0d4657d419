import { FileSessionStore, z } from 'genkit/beta';
import { ai } from '../../given/genkit.ts';

// #region task
const trip = z.object({ likes: z.array(z.string()) });
type Trip = z.infer<typeof trip>;
const note = ai.defineTool(
  { name: 'note', description: 'Notes a taste', inputSchema: z.object({ what: z.string() }) },
  async ({ what }) => {
    const session = ai.currentSession<Trip>();
    session.updateCustom((state) => ({ likes: [...(state?.likes ?? []), what] }));
  },
);
const planner = ai.defineAgent({
  name: 'planner',
  tools: [note],
  stateSchema: trip,
  store: new FileSessionStore<Trip>('./trips'),
});
const answer = await planner.chat().send('I like museums');
console.log(answer.state?.likes);
// #endregion
