import { replay } from '../../src/replay/index.ts';
import { openSessions } from './support/many-sessions.ts';

// Replays slowly, so that the test can kill it in the middle.
const [, , database = '', results = ''] = process.argv;
const app = openSessions(database, 20);
await app.ready();
await replay(app, {
  sessions: { agent: 'chat' },
  resume: results,
  concurrency: 2,
  onProgress: ({ turns }) => console.log(turns),
});
