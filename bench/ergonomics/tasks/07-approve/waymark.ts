import { asked, desk } from '../06-ask-for-approval/waymark.ts';

// #region task
const answer = await desk.resume(asked, (request) => request.approve());
console.log(answer.text);
// #endregion
