import { agentTool } from 'waymark';
import { app } from '../../given/waymark.ts';
import { guide } from '../01-text-answer/waymark.ts';

// #region task
const tools = [agentTool(guide, { description: 'Plans a trip' })];
const editor = app.defineAgent({ name: 'editor', tools });
const answer = await editor.run('Ask the guide for two days in Faro');
console.log(answer.text);
// #endregion
