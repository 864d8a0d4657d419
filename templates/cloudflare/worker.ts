import { DurableObject } from 'cloudflare:workers';
import { durableObject } from 'waymark/durable-object';
import { type FetchHandler, handler } from 'waymark/server';
import { createApp } from './agents.ts';
import { auth } from './auth.ts';

/** The app with the sessions in its database. Its alarm continues background runs, also after an eviction. */
export class Agents extends DurableObject {
  readonly #parts = durableObject(this.ctx.storage);
  readonly #fetch: FetchHandler = handler(createApp(this.#parts), { ...(auth && { auth }) });

  override fetch(request: Request): Promise<Response> {
    return this.#fetch(request);
  }

  override alarm(): Promise<void> {
    return this.#parts.alarm();
  }
}

interface Env {
  readonly AGENTS: { getByName(name: string): { fetch(request: Request): Promise<Response> } };
}

export default {
  /** All clients share one object. With users of your own, name an object after each: `getByName(userId)`. */
  fetch: (request: Request, env: Env) => env.AGENTS.getByName('all').fetch(request),
};
