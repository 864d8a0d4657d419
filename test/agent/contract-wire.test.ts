import { WebSocket } from 'ws';
import type { App } from '../../src/app.ts';
import { createClient } from '../../src/client/index.ts';
import { serve } from '../../src/server/index.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { agentContract } from '../../src/testing/agent-contract/agent-contract.ts';
import type { ContractLink } from '../../src/testing/agent-contract/stage.ts';

for (const transport of ['http', 'websocket'] as const) {
  const connect = async (app: App): Promise<ContractLink> => {
    const server = await serve(app, { port: 0, log: () => {} });
    const client = createClient({ url: server.url, transport, WebSocket });
    return { agent: (name) => client.agent(name), close: () => server.close() };
  };
  agentContract(`over ${transport}`, async () => ({ store: memoryStore(), connect }));
}
