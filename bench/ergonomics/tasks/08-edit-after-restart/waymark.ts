import { desk } from '../06-ask-for-approval/waymark.ts';

const { sessionId } = await desk.run('Refund order 7');
// #region task
const input = { order: '7', amount: 20 };
const answer = await desk.resume({ sessionId }, (request) => request.approve({ input }));
console.log(answer.text);
// #endregion
