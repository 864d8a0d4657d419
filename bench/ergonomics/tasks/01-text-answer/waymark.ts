import { app } from '../../given/waymark.ts';

// #region task
const guide = app.defineAgent({ name: 'guide', system: 'You plan trips.' });
const answer = await guide.run('Two days in Lisbon');
console.log(answer.text);

// #endregion

export { guide };
