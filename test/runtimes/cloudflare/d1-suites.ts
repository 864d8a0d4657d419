// The conformance suites inside workerd: each test has a D1 database of its own.

import { type D1Binding, d1Store } from '../../../src/store/d1/index.ts';
import type { Encryption } from '../../../src/store/sql/content/cipher.ts';
import { agentContract } from '../../../src/testing/agent-contract/agent-contract.ts';
import type { OpenedStore } from '../../../src/testing/store-contract/kit.ts';
import { storeContract } from '../../../src/testing/store-contract/store-contract.ts';
import { clockAhead } from '../../support/movable-clock.ts';
import { d1Transactions, withClock } from './d1-transactions.ts';
import { allowFunctions, answerFor, type Eval } from './suite-worker.ts';
import { names } from './vitest.ts';

type Env = Readonly<Record<string, D1Binding>> & { readonly EVAL: Eval };

/** The database of the running test. Tests run one after the other. */
let db: D1Binding;

async function openD1(encryption?: Encryption): Promise<OpenedStore> {
  let ahead = 0;
  const clock = clockAhead(() => ahead);
  const moved = withClock(db, () => ahead);
  const open = () => d1Store(moved, { clock, ...(encryption && { encryption }) });
  let store = open();
  return {
    store,
    ...(encryption && { searchesText: false }),
    advance(ms) {
      ahead += ms;
    },
    async reopen() {
      await store.close?.();
      store = open();
      await store.open?.();
      return store;
    },
    close: async () => await store.close?.(),
  };
}

storeContract('D1', () => openD1(), { runs: 5 });
storeContract('encrypted D1', () => openD1({ keys: [new Uint8Array(32).fill(7)] }), { runs: 3 });
agentContract('over D1', async () => ({
  store: d1Store(db),
  reopen: async () => d1Store(db),
}));

d1Transactions(() => db);

// biome-ignore lint/style/noDefaultExport: Workers expect it.
export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const at = new URL(request.url).searchParams.get('at');
    if (at === null) return Response.json(names());
    const own = env[`DB${at}`];
    if (own === undefined) return new Response('', { status: 404 });
    db = own;
    allowFunctions(env);
    return await answerFor(Number(at));
  },
};
