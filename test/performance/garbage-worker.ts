// Runs turns and sends how many bytes of each are garbage that only a full collection finds. Needs --expose-gc.
import { memoryStore, waymark } from '../../src/index.ts';
import { takenForOld } from './heap.ts';

const turns = 3000;

const app = waymark({ store: memoryStore() });
app.defineModel({ name: 'instant' }, async (_, { stream }) => {
  for (let at = 0; at < 20; at++) await stream({ content: [{ text: 'twenty characters xx' }] });
  const content = [{ text: 'twenty characters xx'.repeat(20) }];
  return { message: { role: 'model', content }, finishReason: 'stop' };
});
const agent = app.defineAgent({ name: 'young', model: 'instant' });

async function run(count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    const { stream, output } = agent.streamText('hello');
    for await (const _ of stream);
    await output;
  }
}

await run(500);
globalThis.gc?.();
await run(turns);
process.send?.({ bytesPerTurn: takenForOld() / turns });
await app.close();
