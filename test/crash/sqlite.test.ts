import { join } from 'node:path';
import { processSuite } from './support/suite.ts';

processSuite('SQLite', {
  place: (name, folder) => ({ kind: 'sqlite', at: join(folder, `${name}.db`) }),
  processes: 2,
});
