import { join } from 'node:path';
import { Mastra } from '@mastra/core';
import { Agent } from '@mastra/core/agent';
import { InMemoryStore } from '@mastra/core/storage';
import { createTool } from '@mastra/core/tools';
import { LibSQLStore } from '@mastra/libsql';
import { Memory } from '@mastra/memory';
import { z } from 'zod';
import { databaseFileBytes } from '../lib/disk.ts';
import { toolText } from '../lib/text.ts';
import { answer, noted, type Place, type Running, type System } from './system.ts';

/** npm `@mastra/core` with its memory. */
export const system: System = { open };

async function open(
  variant: string,
  { directory, tools }: Place,
): Promise<Running<{ readonly id: string }>> {
  const file = join(directory, 'mastra.db');
  const storage =
    variant === 'libsql'
      ? new LibSQLStore({ id: 'bench', url: `file:${file}` })
      : new InMemoryStore({ id: 'bench' });
  const memory = new Memory({
    storage,
    options: {
      lastMessages: 1_000_000,
      semanticRecall: false,
      workingMemory: { enabled: false },
      generateTitle: false,
    },
  });
  const look = createTool({
    id: 'look',
    description: 'Looks it up',
    inputSchema: z.object({ query: z.string() }),
    execute: async () => toolText(),
  });
  const agent = new Agent({
    id: 'bench',
    name: 'bench',
    instructions: 'x',
    model: instantModel(tools),
    memory,
    ...(tools && { tools: { look } }),
  });
  new Mastra({ agents: { bench: agent }, storage, logger: false });
  return {
    start: (id) => ({ id }),
    async turn({ id }, text) {
      const { textStream } = await agent.stream(text, {
        memory: { thread: id, resource: 'user' },
      });
      let length = 0;
      for await (const piece of textStream) length += noted(piece.length);
      return length;
    },
    ref: ({ id }) => ({ id }),
    resume: ({ id }) => ({ id: String(id) }),
    async mark({ id }) {
      const { messages } = await memory.recall({ threadId: id, perPage: false });
      return { id, messageIds: messages.map((message) => message.id) };
    },
    async branch({ id, messageIds }) {
      const options = { messageFilter: { messageIds: messageIds as string[] } };
      const { thread } = await memory.cloneThread({ sourceThreadId: String(id), options });
      return { id: thread.id };
    },
    bytes: () => (variant === 'libsql' ? databaseFileBytes(file) : 0),
    close: async () => {
      if (storage instanceof LibSQLStore) await storage.close();
    },
  };
}

function instantModel(withTools: boolean) {
  let calls = 0;
  return {
    specificationVersion: 'v2' as const,
    provider: 'bench',
    modelId: 'instant',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('Expected to be streamed.')),
    async doStream({ prompt }: { readonly prompt: readonly { readonly role: string }[] }) {
      const messages = prompt.filter(({ role }) => role !== 'system');
      const { text, chunks } = answer(messages.length);
      const asks = withTools && messages.at(-1)?.role !== 'tool';
      const input = JSON.stringify({ query: text.slice(0, 40) });
      const parts = asks
        ? [{ type: 'tool-call', toolCallId: `${++calls}`, toolName: 'look', input }]
        : [
            { type: 'text-start', id: '1' },
            ...chunks.map((delta) => ({ type: 'text-delta', id: '1', delta })),
            { type: 'text-end', id: '1' },
          ];
      const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
      const finishReason = asks ? 'tool-calls' : 'stop';
      const all = [
        { type: 'stream-start', warnings: [] },
        ...parts,
        { type: 'finish', finishReason, usage },
      ];
      let at = 0;
      const stream = new ReadableStream({
        pull(controller) {
          const part = all[at++];
          if (part === undefined) controller.close();
          else controller.enqueue(part);
        },
      });
      return { stream };
    },
  };
}
