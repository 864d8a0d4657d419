// An app on Workers whose sessions are in D1. Its model asks the test over the network.
import { waitUntil } from 'cloudflare:workers';
import { type App, waymark } from '../../../src/app.ts';
import type { FetchHandler } from '../../../src/server/create-fetch.ts';
import { handler } from '../../../src/server/fetch-only.ts';
import { type D1Binding, d1Store } from '../../../src/store/d1/index.ts';

const auth = () => ({ principal: 'ann' });

// #region worker
interface Env {
  readonly DB: D1Binding;
}

function createApp({ DB }: Env): App {
  // The cron trigger continues runs whose request has ended.
  const app = waymark({ store: d1Store(DB), work: false, claimTtl: 5_000 });
  defineAgents(app);
  return app;
}

const worker = {
  fetch(request: Request, env: Env): Promise<Response> {
    const fetch: FetchHandler = handler(createApp(env), { auth, waitUntil });
    return fetch(request);
  },
  async scheduled(_: unknown, env: Env): Promise<void> {
    await createApp(env).work({ timeout: 600_000 });
  },
};
// #endregion

function defineAgents(app: App): void {
  const model = app.defineModel({ name: 'asking' }, async ({ messages }) => {
    await fetch(`http://test/${messages.length}`);
    return { message: { role: 'model', content: [{ text: 'done' }] }, finishReason: 'stop' };
  });
  app.defineAgent({ name: 'chat', model });
}

// biome-ignore lint/style/noDefaultExport: Workers expect it.
export default worker;
