// Starts a background run, and waits until a worker has finished it.
import { app, desk } from './agents.ts';

await app.ready();
const run = await desk.start('Where is order 7?');
console.log(`Started run ${run.id}. To follow it: npx waymark watch ${run.id}`);
const { text } = await run.wait();
console.log(text);
await app.close();
