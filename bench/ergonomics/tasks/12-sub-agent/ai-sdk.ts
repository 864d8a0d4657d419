import { ToolLoopAgent, tool } from 'ai';
import { z } from 'zod';
import { model } from '../../given/ai-sdk.ts';
import { guide } from '../01-text-answer/ai-sdk.ts';

// #region task
const guideTool = tool({
  description: 'Plans a trip',
  inputSchema: z.object({ prompt: z.string() }),
  execute: async ({ prompt }, { abortSignal }) => {
    const { text } = await guide.generate({ prompt, abortSignal });
    return text;
  },
});
const editor = new ToolLoopAgent({ model, tools: { guide: guideTool } });
const answer = await editor.generate({ prompt: 'Ask the guide for two days in Faro' });
console.log(answer.text);
// #endregion
