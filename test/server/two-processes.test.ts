import { type ChildProcess, fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readEvents, type SseEvent, streamTurn, textOf } from './kit.ts';

/** More for the long run: WAYMARK_STREAMS=200 WAYMARK_CUTS=100. */
const streams = Number(process.env.WAYMARK_STREAMS ?? 20);
const cuts = Number(process.env.WAYMARK_CUTS ?? 10);

interface Server {
  readonly url: string;
  readonly child: ChildProcess;
}

let folder: string;
let place: string;
let servers: Server[];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-'));
  place = join(folder, 'shared.db');
  servers = await Promise.all([start(place), start(place)]);
}, 30_000);
afterAll(async () => {
  await Promise.all(servers.map(({ child }) => end(child)));
  await rm(folder, { recursive: true, force: true });
});

test(
  `${streams} streams with ${cuts} cuts each, over two processes: no gap, no repeat`,
  async () => {
    const pieces = cuts * 6;
    const results = await Promise.all(
      Array.from({ length: streams }, (_, at) => follow(`count ${pieces} 8`, at)),
    );
    for (const { events, lost } of results) {
      const chunks = events.filter(({ event }) => event === 'chunk');
      expect(chunks.map(({ id }) => id)).toEqual(chunks.map((_, seq) => `1.${seq}`));
      expect(textOf(events)).toBe(
        Array.from({ length: pieces }, (_, piece) => `${piece} `).join(''),
      );
      expect(events.at(-1)).toMatchObject({ event: 'output', data: { finishReason: 'stop' } });
      expect(lost).toBeGreaterThan(0);
    }
    expect(results.reduce((sum, { lost }) => sum + lost, 0)).toBeGreaterThan((streams * cuts) / 2);
  },
  Math.max(60_000, streams * cuts * 60),
);

test('a process that is killed in the middle of a turn: another goes on with it', async () => {
  const other = join(folder, 'other.db');
  const [doomed, survivor] = await Promise.all([start(other, 1000), start(other, 1000)]);
  const response = await streamTurn(doomed.url, 'count 30 20');
  const seen: SseEvent[] = [];
  try {
    for await (const event of readEvents(response)) {
      seen.push(event);
      if (seen.length === 10) doomed.child.kill('SIGKILL');
    }
  } catch {
    // The line is cut.
  }
  const { snapshotId } = seen[0]?.data.turnStart ?? {};
  const rest: SseEvent[] = [];
  const again = await fetch(`${survivor.url}/agents/chat/snapshots/${snapshotId}/events`, {
    headers: { 'last-event-id': seen.at(-1)?.id ?? '' },
  });
  for await (const event of readEvents(again)) rest.push(event);
  expect(rest.some(({ event, data }) => event === 'reset' && data.attempt === 2)).toBe(true);
  const afterReset = rest.slice(rest.findLastIndex(({ event }) => event === 'reset'));
  expect(textOf(afterReset)).toBe(Array.from({ length: 30 }, (_, piece) => `${piece} `).join(''));
  expect(rest.at(-1)).toMatchObject({
    event: 'output',
    data: { snapshotId, finishReason: 'stop' },
  });
  await end(survivor.child);
}, 30_000);

/** Follows a turn to its end, leaving now and then and coming back to either process. */
async function follow(text: string, seed: number): Promise<{ events: SseEvent[]; lost: number }> {
  const random = randomOf(seed + 1);
  const events: SseEvent[] = [];
  let lost = 0;
  let response = await streamTurn(pick(random), text);
  for (;;) {
    const limit = lost < cuts ? 1 + Math.floor(random() * 9) : Number.POSITIVE_INFINITY;
    const done = await readSome(response, events, limit);
    if (done) return { events, lost };
    lost++;
    const { snapshotId } = events[0]?.data.turnStart ?? {};
    response = await fetch(`${pick(random)}/agents/chat/snapshots/${snapshotId}/events`, {
      headers: { 'last-event-id': events.at(-1)?.id ?? '' },
    });
  }
}

async function readSome(response: Response, into: SseEvent[], limit: number): Promise<boolean> {
  let count = 0;
  // Leaving the loop cancels the body, which cuts the line.
  for await (const event of readEvents(response)) {
    into.push(event);
    if (event.event === 'output' || event.event === 'error') return true;
    if (++count >= limit) return false;
  }
  return false;
}

function pick(random: () => number): string {
  return servers[Math.floor(random() * servers.length)]?.url ?? '';
}

function randomOf(seed: number): () => number {
  let state = seed * 2654435761;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

async function start(at: string, claimTtl = 10_000): Promise<Server> {
  const child = fork(new URL('child.ts', import.meta.url), ['sqlite', at, `${claimTtl}`], {
    stdio: 'inherit',
  });
  const port = await new Promise<number>((resolve, reject) => {
    child.once('message', (message) => resolve((message as { port: number }).port));
    child.once('exit', (code) => reject(new Error(`The server ended with ${code}`)));
  });
  return { url: `http://127.0.0.1:${port}`, child };
}

function end(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.send('close');
  });
}
