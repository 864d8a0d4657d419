import { type ChildProcess, fork } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { allEvents, readEvents, type SseEvent, streamTurn, textOf } from './kit.ts';

const [streams, cuts, msPerPiece] = process.env.LONG === '1' ? [200, 100, 50] : [20, 10, 8];

interface Server {
  readonly url: string;
  readonly child: ChildProcess;
}

let folder: string;
let postgres: TestPostgres;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-'));
  postgres = await startPostgres();
}, 60_000);
afterAll(async () => {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

describe.each(['sqlite', 'postgres'])('two processes on one %s', (kind) => {
  const place = (): string =>
    kind === 'sqlite' ? join(folder, 'shared.db') : postgres.connectionString;

  test(
    `${streams} streams with ${cuts} cuts each: no gap, no repeat`,
    async () => {
      const servers = [await start(kind, place()), await start(kind, place())];
      const pieces = cuts * 6;
      const results = await Promise.all(
        Array.from({ length: streams }, (_, at) =>
          follow(servers, `count ${pieces} ${msPerPiece}`, at),
        ),
      );
      for (const { events, lost } of results) {
        const chunks = events.filter(({ event }) => event === 'chunk');
        expect(chunks.map(({ id }) => id)).toEqual(chunks.map((_, seq) => `1.${seq}`));
        expect(textOf(events)).toBe(piecesUpTo(pieces));
        expect(events.at(-1)).toMatchObject({ event: 'output', data: { finishReason: 'stop' } });
        expect(lost).toBeGreaterThan(0);
      }
      const lost = results.reduce((sum, result) => sum + result.lost, 0);
      expect(lost).toBeGreaterThan((streams * cuts) / 2);
      await Promise.all(servers.map(end));
    },
    Math.max(60_000, streams * cuts * 60),
  );

  test('one is killed in the middle of a turn: the other goes on with it', async () => {
    const [doomed, survivor] = await Promise.all([
      start(kind, place(), 1000),
      start(kind, place(), 1000),
    ]);
    const seen = await readUntilCut(await streamTurn(doomed.url, 'count 30 20'), (events) => {
      if (events.length === 10) doomed.child.kill('SIGKILL');
    });
    const { snapshotId } = seen[0]?.data.turnStart ?? {};
    const again = await fetch(`${survivor.url}/agents/chat/snapshots/${snapshotId}/events`, {
      headers: { 'last-event-id': seen.at(-1)?.id ?? '' },
    });
    const rest = await allEvents(again);
    const reset = rest.findLastIndex(({ event }) => event === 'reset');
    expect(rest[reset]?.data).toEqual({ attempt: 2 });
    expect(textOf(rest.slice(reset))).toBe(piecesUpTo(30));
    expect(rest.at(-1)).toMatchObject({
      event: 'output',
      data: { snapshotId, finishReason: 'stop' },
    });
    await end(survivor);
  }, 30_000);

  test('one is frozen for so long that the other takes over: its own reader sees it', async () => {
    const [frozen, other] = await Promise.all([
      start(kind, place(), 1000),
      start(kind, place(), 1000),
    ]);
    const response = await streamTurn(frozen.url, 'count 60 30');
    const seen: SseEvent[] = [];
    for await (const event of readEvents(response)) {
      seen.push(event);
      if (seen.length !== 5) continue;
      frozen.child.kill('SIGSTOP');
      setTimeout(() => frozen.child.kill('SIGCONT'), 3000);
    }
    const reset = seen.findLastIndex(({ event }) => event === 'reset');
    expect(reset).toBeGreaterThan(0);
    expect(textOf(seen.slice(reset))).toBe(piecesUpTo(60));
    expect(seen.at(-1)).toMatchObject({ event: 'output', data: { finishReason: 'stop' } });
    await Promise.all([frozen, other].map(end));
  }, 30_000);
});

function piecesUpTo(count: number): string {
  return Array.from({ length: count }, (_, piece) => `${piece} `).join('');
}

async function readUntilCut(
  response: Response,
  onEvent: (events: readonly SseEvent[]) => void,
): Promise<readonly SseEvent[]> {
  const events: SseEvent[] = [];
  try {
    for await (const event of readEvents(response)) {
      events.push(event);
      onEvent(events);
    }
  } catch {
    // The line was cut.
  }
  return events;
}

/** Follows a turn to its end, leaving now and then and coming back to either process. */
async function follow(
  servers: readonly Server[],
  text: string,
  seed: number,
): Promise<{ events: SseEvent[]; lost: number }> {
  const random = randomOf(seed + 1);
  const events: SseEvent[] = [];
  let lost = 0;
  let response = await streamTurn(pick(servers, random), text);
  for (;;) {
    const limit = lost < cuts ? 1 + Math.floor(random() * 9) : Number.POSITIVE_INFINITY;
    const done = await readSome(response, events, limit);
    if (done) return { events, lost };
    lost++;
    const { snapshotId } = events[0]?.data.turnStart ?? {};
    response = await comeBack(() => pick(servers, random), snapshotId, events.at(-1)?.id ?? '');
  }
}

// A line may be lost again before it is used, as every client knows.
async function comeBack(url: () => string, snapshotId: string, lastId: string): Promise<Response> {
  for (let tries = 0; ; tries++) {
    try {
      return await fetch(`${url()}/agents/chat/snapshots/${snapshotId}/events`, {
        headers: { 'last-event-id': lastId },
      });
    } catch (error) {
      if (tries === 10) throw error;
    }
  }
}

async function readSome(response: Response, into: SseEvent[], limit: number): Promise<boolean> {
  let count = 0;
  if (!response.ok) throw new Error(await response.text());
  // Leaving the loop cancels the body, which cuts the line.
  for await (const event of readEvents(response)) {
    into.push(event);
    if (event.event === 'output' || event.event === 'error') return true;
    if (++count >= limit) return false;
  }
  return false;
}

function pick(servers: readonly Server[], random: () => number): string {
  return servers[Math.floor(random() * servers.length)]?.url ?? '';
}

function randomOf(seed: number): () => number {
  let state = seed * 2654435761;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

async function start(kind: string, place: string, claimTtl = 10_000): Promise<Server> {
  const child = fork(new URL('child.ts', import.meta.url), [kind, place, `${claimTtl}`], {
    stdio: 'inherit',
  });
  const port = await new Promise<number>((resolve, reject) => {
    child.once('message', (message) => resolve((message as { port: number }).port));
    child.once('exit', (code) => reject(new Error(`The server ended with ${code}`)));
  });
  return { url: `http://127.0.0.1:${port}`, child };
}

function end({ child }: Server): Promise<void> {
  return new Promise((resolve) => {
    child.once('exit', () => resolve());
    child.send('close');
  });
}
