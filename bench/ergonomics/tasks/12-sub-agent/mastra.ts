import { Agent } from '@mastra/core/agent';
import { model } from '../../given/mastra.ts';

// #region task
const guide = new Agent({
  id: 'guide',
  name: 'Guide',
  description: 'Plans a trip',
  instructions: 'You plan trips.',
  model,
});
const editor = new Agent({
  id: 'editor',
  name: 'Editor',
  instructions: 'Help.',
  model,
  agents: { guide },
});
const answer = await editor.generate('Ask the guide for two days in Faro');
console.log(answer.text);
// #endregion
