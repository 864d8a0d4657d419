import { FileSessionStore, genkit, InMemorySessionStore, z } from 'genkit/beta';
import { disableGenkitOTelInitialization } from 'genkit/tracing';
import { allocated } from '../lib/disk.ts';
import { toolText } from '../lib/text.ts';
import { answer, noted, type Place, type Running, type System } from './system.ts';

/** Agents of npm `genkit` (beta), with its OpenTelemetry set-up switched off. */
export const system: System = { open };

type GenkitChat = ReturnType<ReturnType<typeof defineAgent>['chat']>;

async function open(variant: string, { directory, tools }: Place): Promise<Running<GenkitChat>> {
  const agent = defineAgent(variant, directory, tools);
  return {
    start: () => agent.chat(),
    async turn(chat, text) {
      const { stream, response } = chat.sendStream(text);
      let length = 0;
      for await (const chunk of stream) length += noted(chunk.text.length);
      await response;
      return length;
    },
    ref: ({ sessionId }) => ({ sessionId }),
    resume: ({ sessionId }) => agent.loadChat({ sessionId: String(sessionId) }),
    mark: ({ snapshotId }) => ({ snapshotId }),
    branch: ({ snapshotId }) => agent.loadChat({ snapshotId: String(snapshotId) }),
    bytes: () => allocated(directory),
  };
}

/** The agent of a variant. */
export function defineAgent(variant: string, directory: string, withTools: boolean) {
  disableGenkitOTelInitialization();
  const ai = genkit({});
  ai.defineModel(
    { name: 'instant', supports: { multiturn: true, systemRole: true, tools: true } },
    async ({ messages }, sendChunk) => {
      const { text, chunks } = answer(messages.length);
      if (withTools && messages.at(-1)?.role !== 'tool') {
        const toolRequest = { name: 'look', ref: '1', input: { query: text.slice(0, 40) } };
        return { message: { role: 'model', content: [{ toolRequest }] }, finishReason: 'stop' };
      }
      for (const piece of chunks) sendChunk?.({ content: [{ text: piece }] });
      return { message: { role: 'model', content: [{ text }] }, finishReason: 'stop' };
    },
  );
  const look = ai.defineTool(
    { name: 'look', description: 'Looks it up', inputSchema: z.object({ query: z.string() }) },
    async () => toolText(),
  );
  const store =
    variant === 'memory'
      ? new InMemorySessionStore()
      : variant === 'file'
        ? new FileSessionStore(directory)
        : undefined;
  return ai.defineAgent({
    name: 'bench',
    model: 'instant',
    ...(withTools && { tools: [look] }),
    ...(store && { store }),
  });
}
