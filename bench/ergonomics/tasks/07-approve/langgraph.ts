import { Command } from '@langchain/langgraph';
import { desk, thread } from '../06-ask-for-approval/langgraph.ts';

// #region task
const answer = await desk.invoke(new Command({ resume: { approved: true } }), thread);
console.log(answer.messages.at(-1)?.text);
// #endregion
