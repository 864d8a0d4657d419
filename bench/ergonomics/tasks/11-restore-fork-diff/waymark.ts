import { guide } from '../01-text-answer/waymark.ts';

const chat = guide.chat();
const first = await chat.send('Two days in Lisbon');
const second = await chat.send('With children');
// #region task
await guide.restore(first);
const fork = await guide.fork(first);
const other = await guide.run('On foot', { sessionId: fork.sessionId });
console.log(await guide.diff(second, other));
// #endregion
