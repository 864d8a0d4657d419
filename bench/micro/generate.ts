// What one generate call costs beyond the model itself: an instant model that streams 20 pieces, driven raw, through
// generate, and through `streamText` of npm `ai`, in one run. `node bench/micro/generate.ts [rounds]`
import { streamText } from 'ai';
import type { Action } from '../../src/core/action.ts';
import { createIds } from '../../src/core/id.ts';
import { createRegistry } from '../../src/core/registry.ts';
import { systemClock } from '../../src/core/time.ts';
import { createGenerator } from '../../src/generate/generator.ts';
import { modelMessage } from '../../src/generate/template.ts';

Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false });

const rounds = Number(process.argv[2] ?? 2000);
const pieces = Array.from({ length: 20 }, (_, at) => `piece ${at} `);
const parts = [
  { type: 'stream-start', warnings: [] },
  { type: 'text-start', id: '1' },
  ...pieces.map((delta) => ({ type: 'text-delta', id: '1', delta })),
  { type: 'text-end', id: '1' },
  {
    type: 'finish',
    finishReason: { unified: 'stop', raw: 'stop' },
    usage: {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 20, text: 20, reasoning: 0 },
    },
  },
];

const languageModel = {
  specificationVersion: 'v4' as const,
  provider: 'bench',
  modelId: 'instant',
  supportedUrls: {},
  async doGenerate(): Promise<never> {
    throw new Error('not used');
  },
  async doStream() {
    let at = 0;
    return {
      stream: new ReadableStream({
        pull(controller) {
          if (at < parts.length) controller.enqueue(parts[at++]);
          else controller.close();
        },
      }),
    };
  },
};

const clock = systemClock;
const app = createGenerator({ registry: createRegistry<Action>(), clock, newId: createIds(clock) });
app.defineModel({ name: 'function' }, async (_, { stream }) => {
  let text = '';
  for (const piece of pieces) {
    text += piece;
    await stream({ content: [{ text: piece }] });
  }
  return { message: modelMessage(text), finishReason: 'stop', usage: { totalTokens: 21 } };
});

const runs: Readonly<Record<string, () => Promise<unknown>>> = {
  'doStream itself': async () => {
    const { stream } = await languageModel.doStream();
    const reader = stream.getReader();
    while (!(await reader.read()).done);
  },
  generate: () => app.generate({ model: languageModel, prompt: 'Hello' }),
  'generateStream, read': async () => {
    const { stream, response } = app.generateStream({ model: languageModel, prompt: 'Hello' });
    let length = 0;
    for await (const chunk of stream) length += chunk.text.length;
    await response;
    return length;
  },
  'generate, defineModel': () => app.generate({ model: 'function', prompt: 'Hello' }),
  'streamText of ai': async () => {
    const { textStream } = streamText({ model: languageModel as never, prompt: 'Hello' });
    let length = 0;
    for await (const text of textStream) length += text.length;
    return length;
  },
};

// Interleaved, so that a busy moment of the machine falls on all of them.
const times = new Map(Object.keys(runs).map((name) => [name, [] as number[]]));
for (let round = -200; round < rounds; round++) {
  for (const [name, run] of Object.entries(runs)) {
    const start = performance.now();
    await run();
    if (round >= 0) times.get(name)?.push(performance.now() - start);
  }
}

const median = (name: string): number => {
  const sorted = (times.get(name) ?? []).toSorted((a, b) => a - b);
  return (sorted[Math.floor(sorted.length / 2)] ?? 0) * 1000;
};
const base = median('doStream itself');
console.log(`${rounds} calls each, 20 pieces, median in µs (Node ${process.version})`);
for (const name of Object.keys(runs)) {
  const time = median(name);
  console.log(`${name.padEnd(24)} ${time.toFixed(1).padStart(9)}  +${(time - base).toFixed(1)}`);
}
const overhead = median('generate') - base;
const peer = median('streamText of ai') - base;
console.log(
  `overhead of generate: ${(overhead / 1000).toFixed(4)} ms (aim 0.1), ${((overhead / peer) * 100).toFixed(1)} % of streamText's (aim 10 %)`,
);
