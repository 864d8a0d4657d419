import { guide } from '../01-text-answer/genkit.ts';

// #region task
const run = await guide.chat().detach('Read five sources');
const done = await run.wait();
console.log(done.state?.messages?.at(-1)?.content[0]?.text);
await run.abort();
// #endregion
