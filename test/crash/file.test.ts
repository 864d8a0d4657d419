import { join } from 'node:path';
import { retrySuite } from './support/suite.ts';

retrySuite('Files', { place: (name, folder) => ({ kind: 'file', at: join(folder, name) }) });
