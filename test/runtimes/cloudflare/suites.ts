// The conformance suites inside workerd: each test runs in a Durable Object of its own.
import { DurableObject } from 'cloudflare:workers';
import * as dotprompt from 'dotprompt';
import { durableObject } from '../../../src/durable-object/index.ts';
import type { Encryption } from '../../../src/store/sql/content/cipher.ts';
import { agentContract } from '../../../src/testing/agent-contract/agent-contract.ts';
import type { OpenedStore } from '../../../src/testing/store-contract/kit.ts';
import { storeContract } from '../../../src/testing/store-contract/store-contract.ts';
import { movableClock } from '../../support/movable-clock.ts';
import { names, runTest } from './vitest.ts';

// A Worker finds no optional packages by itself. Prompts of the suite have placeholders.
const { getBuiltinModule } = process;
process.getBuiltinModule = ((name: string) =>
  name === 'node:module'
    ? { createRequire: () => () => dotprompt }
    : getBuiltinModule(name)) as typeof getBuiltinModule;

interface Env {
  readonly SUITE: { getByName(name: string): { fetch(request: Request): Promise<Response> } };
  readonly EVAL: { newFunction(code: string, name: string, ...parameters: string[]): unknown };
}

/** Prompts are compiled to functions, which a Worker may make only through a binding for tests. */
function allowFunctions({ EVAL }: Env): void {
  const make = (parts: unknown[]) => {
    const texts = parts.map(String);
    return EVAL.newFunction(texts.pop() ?? '', 'made', ...texts);
  };
  globalThis.Function = new Proxy(Function, {
    apply: (_, __, parts) => make(parts),
    construct: (_, parts) => make(parts) as object,
  });
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

export class Suite extends DurableObject<Env> {
  override async fetch(request: Request): Promise<Response> {
    const at = Number(new URL(request.url).searchParams.get('at'));
    storage = this.ctx.storage;
    allowFunctions(this.env);
    try {
      return Response.json({ result: await runTest(at) });
    } catch (error) {
      const { stack } = error as Error;
      return Response.json({ result: 'failed', error: `${stack} ${JSON.stringify(error)}` });
    }
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
