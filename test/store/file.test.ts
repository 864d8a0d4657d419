import { fileStore } from '../../src/store/file/index.ts';
import { storeContract } from '../../src/testing/store-contract/store-contract.ts';
import { openForContract, takingTurns } from './file-support.ts';

const runs = 5;

storeContract(
  'file',
  () => openForContract((directory, clock) => fileStore(directory, { clock })),
  { runs },
);

storeContract('file, two of them taking turns', () => openForContract(takingTurns), { runs });
