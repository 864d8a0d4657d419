import { guide } from '../01-text-answer/waymark.ts';

// #region task
const turn = guide.stream('Two days in Lisbon');
for await (const text of turn.textStream) process.stdout.write(text);
// #endregion
