import { ai, store } from '../../given/genkit.ts';

// #region task
const guide = ai.defineAgent({ name: 'guide', system: 'You plan trips.', store });
const answer = await guide.chat().send('Two days in Lisbon');
console.log(answer.text);

// #endregion

export { guide };
