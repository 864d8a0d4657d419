import { app } from '../../given/waymark.ts';

// #region task
const count = app.defineTool(
  { name: 'count', description: 'Counts the messages so far' },
  (_, { session }) => session.messages.length,
);
const counter = app.defineAgent({ name: 'counter', tools: [count] });
const answer = await counter.run('How long is this conversation?');
console.log(answer.text);
// #endregion
