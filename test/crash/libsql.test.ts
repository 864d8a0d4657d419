import { join } from 'node:path';
import { processSuite } from './support/suite.ts';

processSuite('libSQL', {
  place: (name, folder) => ({
    kind: 'libsql',
    at: join(folder, `${name}.db`),
    from: import.meta.url,
  }),
  // Its transactions are asynchronous: a thread can be blocked in the middle of one.
  locksWhenBlocked: true,
  processes: 2,
});
