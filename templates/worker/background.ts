// Starts a background run, and waits until a worker has finished it.
import { app, desk } from './agents.ts';

await app.ready();
const { snapshotId = '' } = await desk.run({
  message: { role: 'user', content: [{ text: 'Where is order 7?' }] },
  detach: true,
});
console.log(`Started run ${snapshotId}. To follow it: npx waymark watch ${snapshotId}`);
const { status, state } = await desk.wait(snapshotId);
console.log(status, state?.messages?.at(-1)?.content);
await app.close();
