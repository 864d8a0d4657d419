import { createServer } from 'node:http';
import { type ModelMessage, streamText } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { stamped, until } from '../lib/pace.ts';
import { reply } from '../lib/text.ts';
import { partsOf } from '../systems/ai.ts';
import { portOf, readBody } from './node-http.ts';
import type { Listen } from './server.ts';

/** `streamText` piped to the response, as its documentation has it; keeps nothing. */
export const listen: Listen = async ({ pieces, every = 0 }) => {
  const model = new MockLanguageModelV4({
    doStream: async () => {
      model.doStreamCalls.length = 0;
      const parts = partsOf(reply(pieces).chunks);
      const started = performance.now();
      let at = 0;
      const stream = new ReadableStream({
        async pull(controller) {
          if (every > 0) await until(started + at * every);
          const part = parts[at++];
          if (part === undefined) controller.close();
          else if (every > 0 && part.type === 'text-delta')
            controller.enqueue({ ...part, delta: stamped(part.delta) });
          else controller.enqueue(part);
        },
      });
      return { stream };
    },
  });
  const server = createServer(async (request, response) => {
    const { messages } = (await readBody(request)) as { messages: ModelMessage[] };
    await streamText({ model, messages }).pipeUIMessageStreamToResponse(response);
  });
  return await portOf(server);
};
