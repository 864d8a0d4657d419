import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { client } from '../../src/client/index.ts';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess, type TestProcess } from '../support/child-process.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { sharedClock } from '../support/shared-clock.ts';
import { post, readEvents, type SseEvent, streamTurn, textOf, userInput } from './kit.ts';

const streams = 100;
const runs = 50;

interface Server {
  readonly url: string;
  readonly child: TestProcess;
}

let folder: string;
let postgres: TestPostgres;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-sigterm-'));
  postgres = await startPostgres();
});
afterEach(endProcesses);
afterAll(async () => {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

/** One stream as a client sees it, across its connections. */
class Followed {
  readonly events: SseEvent[] = [];
  /** How many connections the server has ended before the turn did. */
  cuts = 0;
  /** Resolves when the first connection has ended. */
  first: Promise<void> = Promise.resolve();

  get isOver(): boolean {
    return this.events.at(-1)?.event === 'output';
  }

  /** Starts a turn on one server, and reads its first connection to the end. */
  async start(url: string, text: string): Promise<void> {
    const response = await streamTurn(url, text);
    this.first = this.#read(response);
  }

  /** Continues on another server after the last event. */
  async continue(url: string): Promise<void> {
    const { snapshotId } = this.events[0]?.data.turnStart ?? {};
    await this.#read(
      await fetch(`${url}/agents/chat/snapshots/${snapshotId}/events`, {
        headers: { 'last-event-id': this.events.at(-1)?.id ?? '' },
      }),
    );
  }

  async #read(response: Response): Promise<void> {
    expect(response.status).toBe(200);
    for await (const event of readEvents(response)) this.events.push(event);
    if (!this.isOver) this.cuts++;
  }
}

describe.each(['sqlite', 'postgres'] as const)('SIGTERM under load on %s', (kind) => {
  test(
    `${streams} streams and ${runs} background runs: nothing is lost or repeated (S506, S507)`,
    async () => {
      const files = { clock: join(folder, `${kind}-clock`), grace: join(folder, `${kind}-grace`) };
      const start = (): Promise<Server> => startServer(kind, files);
      const [doomed, other] = await Promise.all([start(), start()]);
      const agent = client({ url: other.url, agent: 'chat' });
      // Turns that end while the server drains, and turns that do not.
      const soon = await holdFile();
      const late = await holdFile();
      const fileOf = (at: number): string => (at % 2 === 0 ? soon : late);
      const followed = Array.from({ length: streams }, () => new Followed());
      await Promise.all(
        followed.map((each, at) => each.start(doomed.url, `20 ${fileOf(at)} stream`)),
      );
      const ids = await Promise.all(
        Array.from({ length: runs }, (_, at) => detach(doomed.url, `20 ${fileOf(at)} run`)),
      );
      const [staying, moving] = split(followed);
      const [stayingIds, movingIds] = split(ids);
      await eventually(() => followed.every(({ events }) => events.length > 10), 'ten pieces');

      // Readiness goes down first, while all streams are open.
      doomed.child.signal('SIGTERM');
      await eventually(async () => (await ready(doomed)) === 503, 'the server to drain');
      expect(await ready(other)).toBe(200);
      expect(followed.filter(({ isOver, cuts }) => isOver || cuts > 0)).toEqual([]);
      const refused = await post(`${doomed.url}/agents/chat/turns`, { input: userInput('no') });
      expect(refused.status).toBe(503);

      // Running turns finish, attached and in the background.
      await rm(soon);
      await Promise.all(staying.map(({ first }) => first));
      for (const id of stayingIds) expect((await agent.wait(id)).status).toBe('succeeded');
      expect(moving.filter(({ isOver, cuts }) => isOver || cuts > 0)).toEqual([]);

      // The rest moves to the other process when its time is over.
      sharedClock(files.grace).advance(120_000);
      await Promise.all(moving.map(({ first }) => first));
      expect(await doomed.child.ended).toEqual({ code: 0, signal: null });
      await rm(late);
      const again = Promise.all(moving.map((each) => each.continue(other.url)));
      // Half a lease later, which is when the other process polls.
      sharedClock(files.clock).advance(301_000);
      await again;
      for (const id of movingIds) expect((await agent.wait(id)).status).toBe('succeeded');

      for (const { events, cuts } of staying) {
        expect(cuts).toBe(0);
        expectWhole(events, 1);
      }
      for (const { events, cuts } of moving) {
        expect(cuts).toBe(1);
        const reset = events.findIndex(({ event }) => event === 'reset');
        expect(events[reset]?.data).toEqual({ attempt: 2, turnIndex: 0, index: 0 });
        expectRising(events.slice(0, reset), 1);
        expectWhole(events.slice(reset), 2);
      }
      const { items } = await agent.listRuns();
      expect(items).toEqual([]);
      await other.child.end('SIGTERM');
    },
    streams * 5_000 + 60_000,
  );
});

/** All pieces of one attempt, once and in order, and its end. */
function expectWhole(events: readonly SseEvent[], attempt: number): void {
  expectRising(events, attempt);
  expect(textOf(events)).toBe(Array.from({ length: 20 }, (_, at) => `${at} `).join(''));
  expect(events.at(-1)).toMatchObject({ event: 'output', data: { finishReason: 'stop' } });
}

function expectRising(events: readonly SseEvent[], attempt: number): void {
  const numbered = events.filter(({ event }) => event === 'chunk' || event === 'reset');
  expect(numbered.map(({ id }) => id)).toEqual(numbered.map((_, at) => `${attempt}.${at}`));
}

function split<T>(all: readonly T[]): [T[], T[]] {
  return [all.filter((_, at) => at % 2 === 0), all.filter((_, at) => at % 2 === 1)];
}

async function ready({ url }: Server): Promise<number> {
  return (await fetch(`${url}/readyz`)).status;
}

async function detach(url: string, text: string): Promise<string> {
  const response = await post(`${url}/agents/chat/turns`, {
    input: { ...userInput(text), detach: true },
  });
  return ((await response.json()) as { snapshotId: string }).snapshotId;
}

async function holdFile(): Promise<string> {
  const file = join(folder, `held-${Math.random()}`);
  await writeFile(file, '');
  return file;
}

async function startServer(
  kind: 'sqlite' | 'postgres',
  { clock, grace }: { readonly clock: string; readonly grace: string },
): Promise<Server> {
  const place = kind === 'sqlite' ? join(folder, 'shared.db') : postgres.connectionString;
  const script = bundleChild(new URL('draining-child.ts', import.meta.url));
  const child = startProcess([script, kind, place, clock, grace]);
  const port = await child.take((line) => /^port (\d+)$/.exec(line)?.[1], 'port');
  return { url: `http://127.0.0.1:${port}`, child };
}
