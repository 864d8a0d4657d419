import { guide } from '../01-text-answer/genkit.ts';

// #region task
const turn = guide.chat().sendStream('Two days in Lisbon');
for await (const { text } of turn.stream) process.stdout.write(text);
// #endregion
