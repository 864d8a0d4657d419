import { memoryStore, waymark } from 'waymark';
import { serve } from 'waymark/server';
import { defineArchive } from './archive.ts';

// #region serve
const app = waymark({ store: memoryStore() });
defineArchive(app);
const server = await serve(app, { port: Number(process.env.PORT ?? 3001), a2a: true });
console.log(`The archive listens on ${server.url}/a2a/archive`);
// #endregion

process.once('SIGTERM', async () => {
  await server.close();
  await app.close();
});
