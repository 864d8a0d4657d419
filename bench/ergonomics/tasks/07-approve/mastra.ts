import { asked, desk } from '../06-ask-for-approval/mastra.ts';

// #region task
const answer = await desk.approveToolCallGenerate({ runId: asked.runId! });
console.log(answer.text);
// #endregion
