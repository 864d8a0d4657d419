import { guide } from '../01-text-answer/waymark.ts';

// #region task
const run = await guide.start('Read five sources');
const answer = await run.wait();
console.log(answer.text);
await run.abort();
// #endregion
