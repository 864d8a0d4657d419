import { ai, store } from '../../given/genkit.ts';

// #region task
const count = ai.defineTool(
  { name: 'count', description: 'Counts the messages so far' },
  async () => ai.currentSession().getMessages().length,
);
const counter = ai.defineAgent({ name: 'counter', tools: [count], store });
const answer = await counter.chat().send('How long is this conversation?');
console.log(answer.text);
// #endregion
