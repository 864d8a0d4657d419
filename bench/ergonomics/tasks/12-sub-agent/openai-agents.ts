import { Agent, run } from '@openai/agents';
import { guide } from '../01-text-answer/openai-agents.ts';

// #region task
const tools = [guide.asTool({ toolDescription: 'Plans a trip' })];
const editor = new Agent({ name: 'editor', tools });
const answer = await run(editor, 'Ask the guide for two days in Faro');
console.log(answer.finalOutput);
// #endregion
