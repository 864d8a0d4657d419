import { z } from 'genkit/beta';
import { ai, store } from '../../given/genkit.ts';
import { guide } from '../01-text-answer/genkit.ts';

// #region task
const guideTool = ai.defineTool(
  { name: 'guide', description: 'Plans a trip', inputSchema: z.string() },
  async (message, { abortSignal }) => (await guide.chat().send(message, { abortSignal })).text,
);
const editor = ai.defineAgent({ name: 'editor', tools: [guideTool], store });
const answer = await editor.chat().send('Ask the guide for two days in Faro');
console.log(answer.text);
// #endregion
