import { fileStore } from '../../src/store/file/index.ts';
import { storeContract } from '../../src/testing/store-contract/store-contract.ts';
import { openForContract, takingTurns } from './file-support.ts';

storeContract('file', () => openForContract((directory, clock) => fileStore(directory, { clock })));

storeContract('file, two of them taking turns', () => openForContract(takingTurns));
