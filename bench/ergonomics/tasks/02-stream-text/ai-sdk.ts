import { guide } from '../01-text-answer/ai-sdk.ts';

// #region task
const turn = await guide.stream({ prompt: 'Two days in Lisbon' });
for await (const text of turn.textStream) process.stdout.write(text);
// #endregion
