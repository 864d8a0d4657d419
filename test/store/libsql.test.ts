import { storeContract } from '../../src/testing/store-contract/store-contract.ts';
import { openLibsql } from '../support/libsql.ts';

storeContract('libSQL', () => openLibsql(), { runs: 10 });
storeContract('encrypted libSQL', () => openLibsql({ keys: [new Uint8Array(32).fill(7)] }), {
  runs: 5,
});
