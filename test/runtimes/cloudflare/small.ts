// The smallest app in a Durable Object: one agent, the store, the native protocol.
import { DurableObject } from 'cloudflare:workers';
import { type App, waymark } from '../../../src/app.ts';
import { type DurableObjectParts, durableObject } from '../../../src/durable-object/index.ts';
import type { FetchHandler } from '../../../src/server/create-fetch.ts';
import { handler } from '../../../src/server/fetch-only.ts';

const auth = () => ({ principal: 'ann' });

function createApp({ store, engine }: DurableObjectParts): App {
  const app = waymark({ store, engine });
  const model = app.defineModel({ name: 'echo' }, async () => ({
    message: { role: 'model', content: [{ text: 'hello' }] },
    finishReason: 'stop',
  }));
  app.defineAgent({ name: 'chat', model });
  return app;
}

// #region app
/** The sessions of one user or team, in the database of an object. Its alarm continues what has no caller. */
export class Agents extends DurableObject {
  readonly #parts = durableObject(this.ctx.storage);
  readonly #fetch: FetchHandler = handler(createApp(this.#parts), { auth });

  override fetch(request: Request): Promise<Response> {
    return this.#fetch(request);
  }

  override alarm(): Promise<void> {
    return this.#parts.alarm();
  }
}
// #endregion

// biome-ignore lint/style/noDefaultExport: Workers expect it.
export default { fetch: () => new Response('') };
