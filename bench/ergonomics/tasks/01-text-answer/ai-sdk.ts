import { ToolLoopAgent } from 'ai';
import { model } from '../../given/ai-sdk.ts';

// #region task
const guide = new ToolLoopAgent({ model, instructions: 'You plan trips.' });
const answer = await guide.generate({ prompt: 'Two days in Lisbon' });
console.log(answer.text);

// #endregion

export { guide };
