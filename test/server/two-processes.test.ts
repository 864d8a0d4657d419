import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess, type TestProcess } from '../support/child-process.ts';
import { eventually } from '../support/eventually.ts';
import { freeze } from '../support/freeze.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { sharedClock } from '../support/shared-clock.ts';
import { allEvents, post, readEvents, type SseEvent, streamTurn, textOf } from './kit.ts';

const short = [20, 10, 8] as const;
// SQLite is for few processes of one machine: the many streams are for Postgres.
const long = { sqlite: [20, 20, 10], postgres: [60, 30, 20] } as const;

interface Server {
  readonly url: string;
  readonly name: string;
  readonly child: TestProcess;
}

let folder: string;
let postgres: TestPostgres;
let clock: PostgresClock;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-'));
  postgres = await startPostgres();
  clock = await postgresClock(postgres.connectionString);
});
afterEach(endProcesses);
afterAll(async () => {
  await clock.close();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

describe.each(['sqlite', 'postgres'] as const)('two processes on one %s', (kind) => {
  const [streams, cuts, msPerPiece] = process.env.LONG === '1' ? long[kind] : short;
  const place = (): string =>
    kind === 'sqlite' ? join(folder, 'shared.db') : clock.connectionString;

  test(`${streams} streams with ${cuts} cuts each: no gap, no repeat`, async () => {
    const servers = [await start(kind, place()), await start(kind, place())];
    const pieces = cuts * 6;
    const results = await Promise.all(
      Array.from({ length: streams }, (_, at) =>
        follow(servers, `count ${pieces} ${msPerPiece}`, { seed: at, cuts }),
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
  }, 1_200_000);

  test('one is killed in the middle of a turn: the other goes on with it', async () => {
    const [doomed, survivor] = await startTwo(kind, place());
    const file = await holdFile();
    const seen: SseEvent[] = [];
    const reading = readInto(seen, await streamTurn(doomed.url, `hold ${file} 30`));
    await eventually(() => seen.length >= 10);
    await doomed.child.end();
    await reading;
    await rm(file);
    await expireClaims(doomed);
    const { snapshotId } = seen[0]?.data.turnStart ?? {};
    const again = await fetch(`${survivor.url}/agents/chat/snapshots/${snapshotId}/events`, {
      headers: { 'last-event-id': seen.at(-1)?.id ?? '' },
    });
    const rest = await allEvents(again);
    const reset = rest.findLastIndex(({ event }) => event === 'reset');
    expect(rest[reset]?.data).toEqual({ attempt: 2, turnIndex: 0, index: 0 });
    expect(textOf(rest.slice(reset))).toBe(piecesUpTo(30));
    expect(rest.at(-1)).toMatchObject({
      event: 'output',
      data: { snapshotId, finishReason: 'stop' },
    });
    await end(survivor);
  });

  test('one is killed in the middle of a response of OpenAI: its stream continues on the other (S352)', async () => {
    const [doomed, survivor] = await startTwo(kind, place());
    const file = await holdFile();
    const seen: SseEvent[] = [];
    const body = { model: 'chat', input: `hold ${file} 30`, background: true, stream: true };
    const reading = readInto(seen, await post(`${doomed.url}/openai/v1/responses`, body));
    await eventually(() => seen.length >= 10);
    await doomed.child.end();
    await reading;
    await rm(file);
    await expireClaims(doomed);
    const { id } = seen[0]?.data.response ?? {};
    const read = async (query: string): Promise<readonly SseEvent[]> =>
      allEvents(await fetch(`${survivor.url}/openai/v1/responses/${id}?stream=true${query}`));
    const rest = await read(`&starting_after=${seen.at(-1)?.data.sequence_number}`);
    const numbers = [...seen, ...rest].map(({ data }) => data.sequence_number);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    const { status, output } = rest.at(-1)?.data.response ?? {};
    expect(status).toBe('completed');
    expect(output).toMatchObject([{ status: 'completed', content: [{ text: piecesUpTo(30) }] }]);
    // Nothing of the dead process is mixed with the answer of the other one.
    const answer = rest.map(({ data }) => data).filter((data) => data.item_id === output[0].id);
    expect(answer.map(({ delta = '' }) => delta).join('')).toBe(piecesUpTo(30));
    expect((await read('')).slice(-rest.length)).toEqual(rest);
    await end(survivor);
  });

  test('one is frozen for so long that the other takes over: its own reader sees it', async () => {
    const [frozen, other] = await startTwo(kind, place());
    const file = await holdFile();
    const seen: SseEvent[] = [];
    const reading = readInto(seen, await streamTurn(frozen.url, `hold ${file} 60`));
    await eventually(() => seen.length >= 5);
    await freeze(frozen.child, kind === 'sqlite' ? place() : undefined);
    await rm(file);
    await advance();
    const { snapshotId } = seen[0]?.data.turnStart ?? {};
    const taken = await allEvents(
      await fetch(`${other.url}/agents/chat/snapshots/${snapshotId}/events`),
    );
    expect(taken.at(-1)).toMatchObject({ event: 'output' });
    frozen.child.signal('SIGCONT');
    await reading;
    const reset = seen.findLastIndex(({ event }) => event === 'reset');
    expect(reset).toBeGreaterThan(0);
    expect(textOf(seen.slice(reset))).toBe(piecesUpTo(60));
    expect(seen.at(-1)).toMatchObject({ event: 'output', data: { finishReason: 'stop' } });
    await Promise.all([frozen, other].map(end));
  });
});

/** Moves the clock of both stores and of all processes past the end of every claim. */
async function advance(): Promise<void> {
  await clock.advance(120_000);
  sharedClock(clockFile()).advance(120_000);
}

/** Lets the claims of a dead process expire. */
async function expireClaims({ name }: Server): Promise<void> {
  await clock.settled(name);
  await advance();
}

function clockFile(): string {
  return join(folder, 'clock');
}

/** A file that holds a turn while it is there. */
async function holdFile(): Promise<string> {
  const file = join(folder, `held-${Math.random()}`);
  await writeFile(file, '');
  return file;
}

function piecesUpTo(count: number): string {
  return Array.from({ length: count }, (_, piece) => `${piece} `).join('');
}

/** Reads a stream to its end, also when that is a cut. */
async function readInto(events: SseEvent[], response: Response): Promise<void> {
  try {
    for await (const event of readEvents(response)) events.push(event);
  } catch {
    // The line was cut.
  }
}

/** Follows a turn to its end, leaving now and then and coming back to either process. */
async function follow(
  servers: readonly Server[],
  text: string,
  { seed, cuts }: { readonly seed: number; readonly cuts: number },
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

let servers = 0;

async function start(kind: string, place: string): Promise<Server> {
  const name = `server-${++servers}`;
  const named = kind === 'postgres' ? `${place}&application_name=${name}` : place;
  const script = bundleChild(new URL('child.ts', import.meta.url));
  const child = startProcess([script, kind, named, clockFile()]);
  const port = await child.take((line) => /^port (\d+)$/.exec(line)?.[1], 'port');
  return { url: `http://127.0.0.1:${port}`, name, child };
}

async function startTwo(kind: string, place: string): Promise<[Server, Server]> {
  return await Promise.all([start(kind, place), start(kind, place)]);
}

async function end({ child }: Server): Promise<void> {
  child.send('close');
  await child.finished();
}
