import { asked, chat } from '../06-ask-for-approval/genkit.ts';

// #region task
const restart = asked.interrupts.map((request) => request.restart());
const answer = await chat.resume({ restart });
console.log(answer.text);
// #endregion
