// The conformance suites inside workerd: each test runs in a Durable Object of its own.
import { DurableObject } from 'cloudflare:workers';
import { durableObject } from '../../../src/durable-object/index.ts';
import type { Encryption } from '../../../src/store/sql/content/cipher.ts';
import { agentContract } from '../../../src/testing/agent-contract/agent-contract.ts';
import type { OpenedStore } from '../../../src/testing/store-contract/kit.ts';
import { storeContract } from '../../../src/testing/store-contract/store-contract.ts';
import { scheduleSuite } from '../../engine/support/schedule-suite.ts';
import { movableClock } from '../../support/movable-clock.ts';
import { allowFunctions, answerFor, type Eval } from './suite-worker.ts';
import { names } from './vitest.ts';

interface Env {
  readonly SUITE: { getByName(name: string): { fetch(request: Request): Promise<Response> } };
  readonly EVAL: Eval;
}

type Storage = Parameters<typeof durableObject>[0];

/** The storage of the object that runs a test. Tests run one after the other. */
let storage: Storage;

async function openObject(encryption?: Encryption): Promise<OpenedStore> {
  const { clock, advance } = movableClock();
  const open = () => durableObject(storage, { clock, ...(encryption && { encryption }) }).store;
  let store = open();
  return {
    store,
    ...(encryption && { searchesText: false }),
    advance,
    async reopen() {
      await store.close?.();
      store = open();
      await store.open?.();
      return store;
    },
    close: async () => await store.close?.(),
  };
}

storeContract('a Durable Object', () => openObject());
storeContract('an encrypted Durable Object', () =>
  openObject({ keys: [new Uint8Array(32).fill(7)] }),
);
agentContract('over a store in a Durable Object', async () => ({
  store: durableObject(storage).store,
  reopen: async () => durableObject(storage).store,
}));

scheduleSuite('a Durable Object', () => openObject());

export class Suite extends DurableObject<Env> {
  override async fetch(request: Request): Promise<Response> {
    const at = Number(new URL(request.url).searchParams.get('at'));
    storage = this.ctx.storage;
    allowFunctions(this.env);
    return await answerFor(at);
  }
}

// biome-ignore lint/style/noDefaultExport: Workers expect it.
export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const at = new URL(request.url).searchParams.get('at');
    if (at === null) return Response.json(names());
    return env.SUITE.getByName(`test ${at}`).fetch(request);
  },
};
