import {
  Agent,
  MemorySession,
  type Model,
  type ModelRequest,
  Runner,
  type StreamEvent,
  setTracingDisabled,
} from '@openai/agents';
import { answer, type Running, type System } from './system.ts';

/** npm `@openai/agents`. */
export const system: System = { open };

async function open(): Promise<Running<MemorySession>> {
  setTracingDisabled(true);
  const agent = new Agent({ name: 'bench', instructions: '', model: instantModel() });
  const runner = new Runner({ tracingDisabled: true });
  return {
    start: (id) => new MemorySession({ sessionId: id }),
    async turn(session, text) {
      const result = await runner.run(agent, text, { stream: true, session });
      let length = 0;
      for await (const event of result) {
        if (event.type !== 'raw_model_stream_event') continue;
        if (event.data.type === 'output_text_delta') length += event.data.delta.length;
      }
      await result.completed;
      return length;
    },
  };
}

function instantModel(): Model {
  let calls = 0;
  return {
    getResponse: () => Promise.reject(new Error('Expected to be streamed.')),
    async *getStreamedResponse({ input }: ModelRequest): AsyncGenerator<StreamEvent> {
      const { text, chunks } = answer(Array.isArray(input) ? input.length : 1);
      const id = `${++calls}`;
      yield { type: 'response_started' };
      for (const delta of chunks) yield { type: 'output_text_delta', delta };
      const output = {
        id,
        type: 'message' as const,
        role: 'assistant' as const,
        status: 'completed' as const,
        content: [{ type: 'output_text' as const, text }],
      };
      const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
      yield { type: 'response_done', response: { id, usage, output: [output] } };
    },
  };
}
