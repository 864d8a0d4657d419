/**
 * What a turn costs in process, with an instant model and twenty chunks: node --expose-gc bench/agent.ts
 * Prints the median of turns 10-60, 950-1000 and around 5000, without a store and with the memory store, on a connection and
 * each turn by itself, and how the heap grows.
 */
import type { Agent } from '../src/agent/contract/agent.ts';
import { waymark } from '../src/app.ts';
import { memoryStore } from '../src/store/memory/memory-store.ts';

const chunks = Array.from({ length: 20 }, (_, n) => `This is piece ${n} of the answer. `);
const question = 'What is the answer to a question of about two hundred characters? '.repeat(3);
const maxTurns = 5_000;

interface Setup {
  readonly name: string;
  readonly store: boolean;
  readonly how: 'connection' | 'one-shot';
}

const setups: readonly Setup[] = [
  { name: 'no store, connection', store: false, how: 'connection' },
  { name: 'memory store, connection', store: true, how: 'connection' },
  { name: 'memory store, one-shot', store: true, how: 'one-shot' },
];

function define(store: boolean): Agent {
  const app = waymark(store ? { store: memoryStore() } : {});
  const model = app.defineModel({ name: 'instant' }, async (_request, { stream }) => {
    for (const text of chunks) await stream({ content: [{ text }] });
    return {
      message: { role: 'model', content: [{ text: chunks.join('') }] },
      finishReason: 'stop',
    };
  });
  return app.defineAgent({ name: 'chat', model, system: 'Be brief.' }) as unknown as Agent;
}

function turnsOf(agent: Agent, how: Setup['how']): () => Promise<void> {
  if (how === 'one-shot')
    return async () => void (await agent.runText(question, { sessionId: 's' }));
  const connection = agent.streamBidi();
  return async () => {
    await connection.sendText(question);
    for await (const chunk of connection.turn()) void chunk;
  };
}

async function measure({ name, store, how }: Setup): Promise<Record<string, string | number>> {
  // The process is warm before the first turn that counts.
  const warm = turnsOf(define(store), how);
  for (let n = 0; n < 300; n++) await warm();
  globalThis.gc?.();
  const before = process.memoryUsage().heapUsed;
  const turn = turnsOf(define(store), how);
  const times: number[] = [];
  for (let n = 0; n < maxTurns + 25; n++) {
    const start = performance.now();
    await turn();
    times.push(performance.now() - start);
  }
  globalThis.gc?.();
  const heap = (process.memoryUsage().heapUsed - before) / 2 ** 20;
  const [early, late, latest] = [
    median(times.slice(10, 60)),
    median(times.slice(950, 1_000)),
    median(times.slice(maxTurns - 25)),
  ];
  return {
    setup: name,
    '10-60 ms': round(early),
    '950-1000 ms': round(late),
    'ratio (1.3)': round(late / early),
    '5000 ms': round(latest),
    'ratio (3)': round(latest / early),
    'heap MB': round(heap),
    'KB a turn': round((heap * 1_024) / times.length),
  };
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

const rows: Record<string, string | number>[] = [];
for (const setup of setups) rows.push(await measure(setup));
console.table(rows);
