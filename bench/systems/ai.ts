import { type ModelMessage, streamText, ToolLoopAgent } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { answer, type Running, type System } from './system.ts';

/** npm `ai`: what it takes when one's own code does all the keeping. */
export const system: System = { open };

Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

async function open(variant: string): Promise<Running<{ messages: ModelMessage[] }>> {
  const model = instantModel();
  const agent = new ToolLoopAgent({ model });
  return {
    start: () => ({ messages: [] }),
    async turn({ messages }, text) {
      messages.push({ role: 'user', content: text });
      const result =
        variant === 'agent' ? await agent.stream({ messages }) : streamText({ model, messages });
      let length = 0;
      for await (const piece of result.textStream) length += piece.length;
      messages.push(...(await result.response).messages);
      return length;
    },
  };
}

/** The instant model as an AI SDK language model. */
export function instantModel(): MockLanguageModelV4 {
  const model = new MockLanguageModelV4({
    doStream: async ({ prompt }) => {
      // The mock keeps every prompt otherwise.
      model.doStreamCalls.length = 0;
      const parts = partsOf(answer(prompt.length).chunks);
      let at = 0;
      return {
        stream: new ReadableStream({
          pull(controller) {
            const part = parts[at++];
            if (part === undefined) controller.close();
            else controller.enqueue(part);
          },
        }),
      };
    },
  });
  return model;
}

/** What a provider streams. */
export function partsOf(chunks: readonly string[]) {
  return [
    { type: 'stream-start' as const, warnings: [] },
    { type: 'text-start' as const, id: '1' },
    ...chunks.map((delta) => ({ type: 'text-delta' as const, id: '1', delta })),
    { type: 'text-end' as const, id: '1' },
    {
      type: 'finish' as const,
      finishReason: { unified: 'stop' as const, raw: 'stop' },
      usage,
    },
  ];
}
