import { createClient, isWaymarkError } from 'waymark/client';
import type { researcher } from './agents.ts';

/** Starts a question in the background, follows it, and prints the report. */
export async function ask(url: string, question: string): Promise<void> {
  // #region ask
  const client = createClient({ url }).agent<typeof researcher>('researcher');
  const run = await client.start(question);
  console.log(`${question}: run ${run.id}`);
  for await (const event of run.watch()) {
    if (event.type === 'reset') console.log(`${question}: another worker continues`);
    if (event.type === 'chunk' && event.chunk.artifact) console.log(event.chunk.artifact.name);
  }
  try {
    const { text, usage } = await run.wait();
    console.log(`${text} (${JSON.stringify(usage?.cost)} micro-dollars)`);
  } catch (error) {
    if (!isWaymarkError(error)) throw error;
    console.log(`${question}: ${error.status}, ${error.message}`);
  }
  // #endregion
}
