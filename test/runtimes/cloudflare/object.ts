// An app in a Durable Object. Its model and its tool ask the test over the network, so that the test sees each call and can hold it.
import { DurableObject } from 'cloudflare:workers';
import { waymark } from '../../../src/app.ts';
import { type DurableObjectParts, durableObject } from '../../../src/durable-object/index.ts';
import { handler } from '../../../src/server/fetch-only.ts';

const ask = async (path: string): Promise<string> =>
  await (await fetch(`http://test/${path}`)).text();

function createApp({ store, engine }: DurableObjectParts, isScheduled = false) {
  const app = waymark({ store, engine, claimTtl: 400 });
  const model = app.defineModel({ name: 'steps' }, async ({ messages }) => {
    const results = messages
      .flatMap(({ content }) => content)
      .filter((part) => 'toolResponse' in part);
    const text = messages.map((message) => JSON.stringify(message.content)).join();
    const steps = Number(/take (\d+) steps/.exec(text)?.[1] ?? 0);
    await ask(`model/${results.length}`);
    return results.length < steps
      ? {
          message: {
            role: 'model',
            content: [{ toolRequest: { ref: `r${results.length}`, name: 'step', input: {} } }],
          },
          finishReason: 'stop',
        }
      : { message: { role: 'model', content: [{ text: 'done' }] }, finishReason: 'stop' };
  });
  const step = app.defineTool(
    { name: 'step', description: 'Takes a step.' },
    async (_, { idempotencyKey, interrupt, context, resumed }) => {
      const expiresIn = Number(context?.expiresIn ?? 0);
      if (expiresIn > 0 && resumed === undefined) interrupt({ why: 'asked' }, { expiresIn });
      return await ask(`tool/${idempotencyKey}`);
    },
  );
  app.defineAgent({ name: 'walker', model, tools: [step] });
  if (isScheduled)
    app.schedule({ key: 'often', every: 1_000, agent: 'walker', input: 'take 1 steps' });
  return app;
}

export class Agents extends DurableObject {
  readonly #parts = durableObject(this.ctx.storage);
  readonly #fetch = handler(createApp(this.#parts), {
    auth: (request) => ({
      principal: 'ann',
      context: { expiresIn: Number(request.headers.get('x-expires') ?? 0) },
    }),
  });

  override async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname === '/evict') this.ctx.abort('evicted');
    if (pathname === '/alarm') {
      await Promise.all([this.alarm(), this.alarm()]);
      return new Response('ok');
    }
    return await this.#fetch(request);
  }

  override alarm(): Promise<void> {
    return this.#parts.alarm();
  }
}

/** An object with a schedule. */
export class Scheduled extends DurableObject {
  readonly #parts = durableObject(this.ctx.storage);
  readonly #app = createApp(this.#parts, true);

  override async fetch(request: Request): Promise<Response> {
    if (new URL(request.url).pathname === '/evict') this.ctx.abort('evicted');
    const { items } = await this.#app.agent('walker').listSessions();
    return Response.json(items.map(({ sessionId }) => sessionId));
  }

  override alarm(): Promise<void> {
    return this.#parts.alarm();
  }
}

/** An object that has tables of its own, and one without SQLite. */
export class Occupied extends DurableObject {
  override async fetch(request: Request): Promise<Response> {
    try {
      const { pathname } = new URL(request.url);
      if (pathname === '/occupied') this.ctx.storage.sql.exec('CREATE TABLE invoices(id INTEGER)');
      // As the development server makes one.
      if (pathname === '/named')
        this.ctx.storage.sql.exec('CREATE TABLE __miniflare_do_name(name)');
      const { store } = durableObject(this.ctx.storage);
      await store.open?.();
      if (pathname === '/newer') {
        this.ctx.storage.sql.exec('UPDATE meta SET format = format + 98');
        await durableObject(this.ctx.storage).store.open?.();
      }
      if (pathname === '/large') {
        const metadata = { big: 'x'.repeat(10) };
        const init = { agent: 'a' };
        await store.runs?.claim(init, {
          runId: '01890a5d-ac96-774b-bcce-b302099a8057',
          sessionId: 's',
          from: 'head',
          mode: 'accepted',
          inputs: [
            { message: { role: 'user', content: [{ text: 'é'.repeat(1_100_000) }], metadata } },
          ],
          ttl: 1_000,
          worker: 'w',
        });
      }
      return new Response('opened');
    } catch (error) {
      const { status, message } = error as { readonly status?: string; readonly message: string };
      return Response.json({ status, message });
    }
  }
}

export class WithoutSql extends Occupied {}

interface Env {
  readonly [name: string]: {
    getByName(name: string): { fetch(request: Request): Promise<Response> };
  };
}

// biome-ignore lint/style/noDefaultExport: Workers expect it.
export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname } = new URL(request.url);
    const kind = request.headers.get('x-class') ?? 'AGENTS';
    return (
      (await env[kind]
        ?.getByName(kind === 'AGENTS' || kind === 'SCHEDULED' ? 'one' : pathname)
        .fetch(request)) ?? new Response('', { status: 404 })
    );
  },
};
