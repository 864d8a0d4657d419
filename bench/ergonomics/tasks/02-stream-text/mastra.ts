import { guide } from '../01-text-answer/mastra.ts';

// #region task
const turn = await guide.stream('Two days in Lisbon');
for await (const text of turn.textStream) process.stdout.write(text);
// #endregion
