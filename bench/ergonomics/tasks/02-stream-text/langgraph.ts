import { guide } from '../01-text-answer/langgraph.ts';

// #region task
const options = { streamMode: 'messages' as const };
const turn = await guide.stream({ messages: 'Two days in Lisbon' }, options);
for await (const [chunk] of turn) process.stdout.write(chunk.text);
// #endregion
