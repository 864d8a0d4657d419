import { DurableObject, waitUntil } from 'cloudflare:workers';
import { type App, memoryStore, waymark } from 'waymark';
import { type FetchHandler, handler } from 'waymark/server';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

function createApp(): App {
  const model = scriptedModel({
    patterns: [
      [/weather/, { toolCalls: [{ name: 'weather', input: { city: 'Rome' } }] }],
      [/book/, { toolCalls: [{ name: 'book', input: { room: 7 } }] }],
      [/slow/, { chunks: ['1 ', '2 ', '3 ', '4'], chunkDelay: 500 }],
      [/count/, { chunks: ['1 ', '2 ', '3 ', '4'], chunkDelay: 5 }],
    ],
    afterTools: (_, results) => `It says ${JSON.stringify(results)}.`,
    otherwise: 'hello there',
  });
  const app = waymark({ store: memoryStore(), model });
  const weather = app.defineTool(
    { name: 'weather', description: 'Tells the weather', input: z.object({ city: z.string() }) },
    ({ city }) => `sunny in ${city}`,
  );
  const book = app.defineTool(
    { name: 'book', description: 'Books a room', input: z.object({ room: z.number() }) },
    ({ room }, { interrupt, resumed }) => {
      if (resumed === undefined) interrupt({ question: `Book room ${room}?` });
      return `room ${room} is booked`;
    },
  );
  app.defineAgent({ name: 'chat', tools: [weather, book] });
  return app;
}

const auth = (request: Request) => ({
  principal: request.headers.get('authorization') ?? 'nobody',
});

// #region wait-until
// At module scope. Turns continue when their client leaves, and background runs after the response.
const fetch: FetchHandler = handler(createApp(), { auth, waitUntil });
// #endregion

// #region object
/** One app per object: its memory is shared by all requests to it. */
export class Agents extends DurableObject<Env> {
  readonly #fetch: FetchHandler = handler(createApp(), { auth });

  override fetch(request: Request): Promise<Response> {
    return this.#fetch(request);
  }
}
// #endregion

interface Env {
  readonly AGENTS: DurableObjectNamespace<Agents>;
}

/** What is bound of the platform, as far as it is used here. */
interface DurableObjectNamespace<_> {
  getByName(name: string): { fetch(request: Request): Promise<Response> };
}

// biome-ignore lint/style/noDefaultExport: Workers expect it.
export default {
  fetch(request: Request, env: Env): Promise<Response> {
    if (request.headers.get('x-object') === null) return fetch(request);
    return env.AGENTS.getByName('one').fetch(request);
  },
};
