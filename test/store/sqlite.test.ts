import { storeContract } from '../../src/testing/store-contract/store-contract.ts';
import { openSqlite } from '../support/contract-stores.ts';

// histories.test.ts has more of them.
storeContract('sqlite', () => openSqlite(), { runs: 10 });
