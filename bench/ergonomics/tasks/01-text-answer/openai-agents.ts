import { Agent, run } from '@openai/agents';

// #region task
const guide = new Agent({ name: 'guide', instructions: 'You plan trips.' });
const answer = await run(guide, 'Two days in Lisbon');
console.log(answer.finalOutput);

// #endregion

export { guide };
