import { libsqlStore } from '../../src/store/libsql/index.ts';
import { agentContract } from '../../src/testing/agent-contract/agent-contract.ts';
import { libsqlFolder } from '../support/libsql.ts';

agentContract('in process over a libSQL store', async () => {
  const { url, remove } = await libsqlFolder();
  return {
    store: libsqlStore({ url }),
    reopen: async () => libsqlStore({ url }),
    close: remove,
  };
});
