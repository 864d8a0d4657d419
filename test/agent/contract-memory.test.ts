import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { agentContract } from '../../src/testing/agent-contract/agent-contract.ts';

agentContract('in process over the memory store', async () => ({ store: memoryStore() }));
