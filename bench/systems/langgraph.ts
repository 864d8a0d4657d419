import { join } from 'node:path';
import type { CallbackManagerForLLMRun } from '@langchain/core/callbacks/manager';
import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessageChunk, type BaseMessage, HumanMessage } from '@langchain/core/messages';
import { ChatGenerationChunk, type ChatResult } from '@langchain/core/outputs';
import { tool } from '@langchain/core/tools';
import {
  type BaseCheckpointSaver,
  END,
  MemorySaver,
  MessagesAnnotation,
  START,
  StateGraph,
} from '@langchain/langgraph';
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt';
import { databaseFileBytes } from '../lib/disk.ts';
import { databaseBytes } from '../lib/postgres.ts';
import { toolText } from '../lib/text.ts';
import { answer, noted, type Place, type Running, type System } from './system.ts';

/** npm `@langchain/langgraph`: a graph of one model node, with a tool node where tools are asked for. */
export const system: System = { load: loadSaver, open };

interface Thread {
  readonly id: string;
  /** The checkpoint to go on from, once. */
  from?: string | undefined;
  /** Only without a saver. */
  messages: BaseMessage[];
}

async function open(variant: string, place: Place): Promise<Running<Thread>> {
  const { saver, bytes, close } = await openSaver(variant, place);
  const graph = buildGraph(place.tools).compile(saver ? { checkpointer: saver } : {});
  const stored = async (thread: Thread, text: string): Promise<number> => {
    const configurable = {
      thread_id: thread.id,
      ...(thread.from !== undefined && { checkpoint_id: thread.from }),
    };
    thread.from = undefined;
    const input = { messages: [new HumanMessage(text)] };
    let length = 0;
    for await (const [chunk] of await graph.stream(input, {
      configurable,
      streamMode: 'messages',
    })) {
      length += textLength(chunk);
    }
    return length;
  };
  const unstored = async (thread: Thread, text: string): Promise<number> => {
    thread.messages.push(new HumanMessage(text));
    let length = 0;
    for await (const [mode, value] of await graph.stream(
      { messages: thread.messages },
      { streamMode: ['messages', 'values'] },
    )) {
      if (mode === 'messages') length += textLength(value[0]);
      else thread.messages = value.messages;
    }
    return length;
  };
  return {
    start: (id) => ({ id, messages: [] }),
    turn: saver ? stored : unstored,
    ref: ({ id }) => ({ id }),
    resume: ({ id }) => ({ id: String(id), messages: [] }),
    async mark({ id }) {
      const { config } = await graph.getState({ configurable: { thread_id: id } });
      return { id, checkpoint: config.configurable?.checkpoint_id };
    },
    branch: ({ id, checkpoint }) => ({ id: String(id), from: String(checkpoint), messages: [] }),
    bytes,
    forget: ({ id }) => saver?.deleteThread(id),
    close,
  };
}

function textLength(message: BaseMessage): number {
  const isAnswer = message.getType() === 'ai' && typeof message.content === 'string';
  return isAnswer ? noted(message.content.length) : 0;
}

async function loadSaver(variant: string): Promise<void> {
  if (variant === 'sqlite') await import('@langchain/langgraph-checkpoint-sqlite');
  if (variant === 'postgres') await import('@langchain/langgraph-checkpoint-postgres');
}

async function openSaver(
  variant: string,
  { directory, postgres }: Place,
): Promise<{
  readonly saver: BaseCheckpointSaver | undefined;
  bytes(): number | Promise<number>;
  close(): void | Promise<void>;
}> {
  switch (variant) {
    case 'sqlite': {
      const { SqliteSaver } = await import('@langchain/langgraph-checkpoint-sqlite');
      const file = join(directory, 'langgraph.db');
      const saver = SqliteSaver.fromConnString(file);
      return {
        saver,
        bytes: () => databaseFileBytes(file),
        close: () => void saver.db.close(),
      };
    }
    case 'postgres': {
      const { PostgresSaver } = await import('@langchain/langgraph-checkpoint-postgres');
      const saver = PostgresSaver.fromConnString(postgres);
      await saver.setup();
      return { saver, bytes: () => databaseBytes(postgres), close: () => saver.end() };
    }
    default: {
      const saver = variant === 'memory' ? new MemorySaver() : undefined;
      return { saver, bytes: () => 0, close: () => {} };
    }
  }
}

function buildGraph(withTools: boolean) {
  const model = new InstantModel(withTools);
  const ask = async ({ messages }: typeof MessagesAnnotation.State) => ({
    messages: [await model.invoke(messages)],
  });
  const graph = new StateGraph(MessagesAnnotation).addNode('model', ask).addEdge(START, 'model');
  if (!withTools) return graph.addEdge('model', END);
  const look = tool(() => toolText(), {
    name: 'look',
    description: 'Looks it up',
    schema: { type: 'object', properties: { query: { type: 'string' } } },
  });
  return graph
    .addNode('tools', new ToolNode([look]))
    .addEdge('tools', 'model')
    .addConditionalEdges('model', toolsCondition);
}

class InstantModel extends BaseChatModel {
  readonly #withTools: boolean;
  #calls = 0;

  constructor(withTools: boolean) {
    super({});
    this.#withTools = withTools;
  }

  override _llmType(): string {
    return 'instant';
  }

  override _generate(): Promise<ChatResult> {
    return Promise.reject(new Error('Expected to be streamed.'));
  }

  override async *_streamResponseChunks(
    messages: BaseMessage[],
    _options: this['ParsedCallOptions'],
    run?: CallbackManagerForLLMRun,
  ): AsyncGenerator<ChatGenerationChunk> {
    const { text, chunks } = answer(messages.length);
    if (this.#withTools && messages.at(-1)?.getType() !== 'tool') {
      const args = JSON.stringify({ query: text.slice(0, 40) });
      const call = { name: 'look', args, id: `${++this.#calls}`, index: 0 };
      const message = new AIMessageChunk({ content: '', tool_call_chunks: [call] });
      yield new ChatGenerationChunk({ text: '', message });
      return;
    }
    for (const piece of chunks) {
      const message = new AIMessageChunk({ content: piece });
      yield new ChatGenerationChunk({ text: piece, message });
      await run?.handleLLMNewToken(piece);
    }
  }
}
