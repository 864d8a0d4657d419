import { createIds } from '../../src/core/id.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { sqlStore } from '../../src/store/sql/sql-store.ts';
import { sqliteDriver } from '../../src/store/sqlite/driver.ts';
import { type Op, SimulatedClient } from './client.ts';
import { clockOf } from './clock.ts';
import { seedHost } from './host.ts';
import { type Link, type LinkFaults, linkDatabase, linkStore } from './link.ts';
import { Oracle } from './oracle.ts';
import { SimulatedProcess } from './process.ts';
import { Random } from './random.ts';
import { type Actor, Scheduler } from './scheduler.ts';

/** A fault of a process at a step of the schedule. */
export interface Fault {
  readonly step: number;
  readonly kind: 'kill' | 'stall';
  readonly choice: number;
}

/** Everything about an episode except its schedule, which follows from the seed. */
export interface Plan {
  readonly seed: number;
  readonly store: 'memory' | 'sqlite';
  readonly processes: number;
  readonly concurrency: 'wait' | 'reject';
  readonly attempts: number;
  readonly faultRate: number;
  readonly clients: readonly (readonly Op[])[];
  readonly faults: readonly Fault[];
}

/** The result of an episode. */
export interface Result {
  readonly turns: number;
  readonly simulatedMs: number;
  readonly steps: number;
  /** A hash of all decisions. */
  readonly schedule: string;
  readonly failure?: Error;
  /** The latest decisions of the scheduler. */
  readonly trace: readonly string[];
}

const claimTtl = 30_000;
const sessions = ['line', 'tree', 'other'];

/** The episode of a seed. */
export function planOf(seed: number, store: Plan['store']): Plan {
  const random = new Random(seed ^ 0x5eed);
  const op = (): Op => ({
    kind: random.weighted({
      turn: 30,
      remote: 8,
      background: 14,
      stop: 4,
      steer: 5,
      answer: 8,
      again: 6,
      branch: 5,
      restore: 4,
      fork: 2,
      pause: 5,
    }),
    command: random.weighted({
      say: 10,
      charge: 6,
      job: 4,
      note: 5,
      multi: 4,
      book: 5,
      fail: 2,
      hang: 0,
      steer: 0,
    }),
    session: random.pick(sessions) as string,
    choice: random.below(1_000_000),
  });
  const clients = Array.from({ length: random.between(2, 4) }, () =>
    Array.from({ length: random.between(8, 24) }, op),
  );
  const ops = clients.reduce((sum, { length }) => sum + length, 0);
  const isCalm = random.chance(0.2);
  const faults = Array.from({ length: isCalm ? 0 : random.below(8) }, () => ({
    step: random.below(ops * 25),
    kind: random.weighted({ kill: 3, stall: 2 }),
    choice: random.below(1_000_000),
  }));
  return {
    seed,
    store,
    processes: random.between(1, 3),
    concurrency: random.chance(0.5) ? 'wait' : 'reject',
    attempts: random.chance(0.5) ? 3 : 50,
    faultRate: isCalm ? 0 : (random.pick([0, 0.002, 0.01]) ?? 0),
    clients,
    faults: faults.toSorted((a, b) => a.step - b.step),
  };
}

/** Runs an episode. The same plan always gives the same schedule. */
export async function runEpisode(plan: Plan): Promise<Result> {
  seedHost(plan.seed);
  const scheduler = new Scheduler(new Random(plan.seed));
  const world: Actor = { name: 'world', frozenUntil: 0, dead: false };
  const clock = clockOf(world, scheduler);
  const oracle = new Oracle(new Set(['line']));
  const faults: LinkFaults = {
    lostRequest: plan.faultRate,
    lostAnswer: plan.faultRate,
    lostHint: plan.faultRate * 10,
  };
  const { store, connect, close } = openStore(plan.store, clock, oracle);
  const processes: SimulatedProcess[] = [];
  let started = 0;
  const boot = (): void => {
    const process = new SimulatedProcess({
      name: `p${++started}`,
      scheduler,
      skew: scheduler.random.chance(0.3) ? scheduler.random.between(-5_000, 5_000) : 0,
      faults,
      claimTtl,
      attempts: plan.attempts,
      desk: { concurrency: plan.concurrency, outside: oracle.outside },
      connect,
      onError: () => {},
      onLostAnswer: (calls) => {
        oracle.repeatableCalls += calls;
      },
    });
    processes.push(process);
    // Opening a store reads from it, which can fail like any other read.
    const getReady = (): Promise<void> => process.app.ready().catch(getReady);
    void getReady();
  };
  const alive = (): SimulatedProcess[] => processes.filter(({ dead }) => !dead);
  const strike = ({ kind, choice }: Fault): void => {
    const living = alive();
    const process = living[choice % Math.max(1, living.length)];
    if (process === undefined) return;
    if (kind === 'stall') process.stall((choice % 7) * 12_000);
    else {
      process.kill();
      // A supervisor starts it again, sooner or later.
      scheduler.timer(world, 1 + ((choice * 31) % 90_000), boot);
    }
  };
  const due = [...plan.faults];
  scheduler.onStep = (step) => {
    oracle.check();
    while (due[0] !== undefined && due[0].step <= step) strike(due.shift() as Fault);
  };
  const begun = scheduler.now;
  const result = (): Omit<Result, 'failure'> => ({
    turns: oracle.acks.length + oracle.accepted.size,
    simulatedMs: scheduler.now - begun,
    steps: scheduler.steps,
    schedule: scheduler.digest.toString(16),
    trace: scheduler.trace,
  });
  try {
    await scheduler.run(async () => {
      for (let n = 0; n < plan.processes; n++) boot();
      const network = {
        scheduler,
        pick: () => scheduler.random.pick(alive()),
        cut: () => faults.lostRequest * 5,
      };
      const isTree = (id: string): boolean => id === 'tree';
      const clients = plan.clients.map((ops, at) =>
        new SimulatedClient({ name: `c${at}`, scheduler, oracle, network, isTree }).run(ops),
      );
      await Promise.all(clients);
      // The faults end; everything that was accepted comes to its end.
      due.length = 0;
      Object.assign(faults, { lostRequest: 0, lostAnswer: 0, lostHint: 0 });
      if (alive().length === 0) boot();
      await untilIdle(store, scheduler, world);
      oracle.check();
      await oracle.checkEnd(store);
      for (const process of alive()) await process.app.close();
    });
    return result();
  } catch (error) {
    return { ...result(), failure: error instanceof Error ? error : new Error(String(error)) };
  } finally {
    for (const process of alive()) scheduler.kill(process);
    await close();
  }
}

/** Waits until no run is open: expired ones are taken over, and attached ones give way. */
async function untilIdle(store: Store, scheduler: Scheduler, world: Actor): Promise<void> {
  for (let waited = 0; waited < 200; waited++) {
    const open = (await store.runs?.listRuns()) ?? [];
    if (open.every(({ mode, expired }) => mode === 'attached' && expired)) return;
    await scheduler.sleep(world, claimTtl);
  }
}

interface OpenStore {
  /** The store without faults, for the checks. */
  readonly store: Store;
  readonly connect: (link: Link, clock: ReturnType<typeof clockOf>) => Store;
  close(): Promise<void>;
}

function openStore(
  kind: Plan['store'],
  clock: ReturnType<typeof clockOf>,
  oracle: Oracle,
): OpenStore {
  const newId = createIds(clock);
  if (kind === 'memory') {
    const store = memoryStore({ clock, newId });
    const observed = oracle.observe(store);
    return { store, connect: (link) => linkStore(observed, link), close: async () => {} };
  }
  const options = { durability: 'normal', maxSize: undefined, onQuery: undefined } as const;
  // All processes share one connection, which tells them of changes; there is no other process to poll for.
  const still = { ...clock, every: () => () => {} };
  const db = sqliteDriver({ ...options, path: ':memory:', clock: still, newId });
  const over = (database: typeof db, own: ReturnType<typeof clockOf>): Store =>
    sqlStore({
      name: 'sqlite',
      driver: database,
      clock: own,
      newId: createIds(own),
      eventsTtl: 60_000,
    });
  return {
    store: over(db, clock),
    connect: (link, own) => over(linkDatabase(db, link), own),
    close: () => db.close(),
  };
}
