import { Agent } from '@mastra/core/agent';
import { model } from '../../given/mastra.ts';

// #region task
const guide = new Agent({ id: 'guide', name: 'Guide', instructions: 'You plan trips.', model });
const answer = await guide.generate('Two days in Lisbon');
console.log(answer.text);

// #endregion

export { guide };
