import type { RunOptions } from '../../agent/contract/agent.ts';
import type { App } from '../../app.ts';
import { toErrorBody } from '../../core/error.ts';
import { defined, type Json } from '../../core/json/json.ts';
import { type Clock, systemClock } from '../../core/time.ts';
import type { Output } from '../../protocol/turn.ts';
import type { RecordedTurn } from '../../replay/recorded-session.ts';
import { recordedTools, type ToolModes } from '../../replay/recorded-tools.ts';
import type { SessionExport } from '../../session/export-session.ts';
import type { Store } from '../../store/contract/store.ts';
import { memoryStore } from '../../store/memory/memory-store.ts';
import { type FakeClock, fakeClock } from '../fake-clock.ts';
import type { ModelAnswers } from './model-answers.ts';
import type { CrashTestOptions } from './options.ts';
import { masked, shownMessages } from './outcome.ts';
import { ProcessProbe, type RunLog } from './probe.ts';
import { type SimulatedProcess, simulateProcess } from './simulated-process.ts';

/** A turn that is run again and again, with crashes. */
export interface TurnCase {
  readonly agent: string;
  /** The turn, as the report names it. */
  readonly title: string;
  readonly input: NonNullable<CrashTestOptions['input']>;
  readonly model: CrashTestOptions['model'];
  readonly answers: ModelAnswers;
  /** A recorded turn, its session, and how its tools are answered. */
  readonly recorded?: {
    readonly turn: RecordedTurn;
    readonly document: SessionExport;
    readonly tools: ToolModes;
  };
}

/** One run of a turn, with a crash or without. */
export interface RunResult extends RunLog {
  /** The outcome; absent if the turn did not end. */
  readonly outcome?: Outcome;
  /** The crash point came. */
  readonly hasCrashed: boolean;
}

export interface Outcome {
  readonly value: Json;
  /** Why the turn failed. */
  readonly error?: string;
}

/** Runs a turn; with `killAt`, its process dies at this point, and another one continues. */
export type RunTurn = (turn: TurnCase, killAt?: number) => Promise<RunResult>;

type RunSettings = Pick<CrashTestOptions, 'context' | 'effects' | 'timeout' | 'reset'> & {
  readonly app: () => Promise<{ readonly app: App; close(): Promise<void> }>;
};

export const defaultTimeout = 10_000;

/** Runs a turn in simulated processes, over a store in memory. */
export async function runOnce(
  turn: TurnCase,
  settings: RunSettings,
  killAt?: number,
): Promise<RunResult> {
  const { effects, timeout = defaultTimeout, reset } = settings;
  await reset?.();
  const log: RunLog = { points: [], begun: [], effects: [] };
  const clock = fakeClock(Date.now());
  const store = memoryStore({ clock });
  const { agent, model, answers, recorded } = turn;
  const from = recorded && (await importTurn(store, agent, recorded));
  const death = Promise.withResolvers<'died'>();
  const opened: { close(): Promise<void> }[] = [];
  const probes: ProcessProbe[] = [];
  const boot = async (isLast: boolean): Promise<SimulatedProcess> => {
    const own = await settings.app();
    opened.push(own);
    const timers = new Set<() => void>();
    const onDeath = (): void => {
      for (const cancel of timers) cancel();
      death.resolve('died');
    };
    const probe = new ProcessProbe({ log, answers, effects, killAt, isLast, onDeath });
    probes.push(probe);
    return simulateProcess({
      app: own.app,
      store,
      clock: clockOf(clock, timers),
      probe,
      agent,
      model,
      tools: recorded && probe.answering(recordedTools(recorded.turn, recorded.tools)),
    });
  };
  try {
    const call = clientOf(from, settings.context);
    const first = await boot(false);
    const deadline = performance.now() + timeout;
    const outcome = (process: SimulatedProcess): Promise<Outcome> =>
      outcomeIn(process, turn.input, call);
    let ended = await within(clock, deadline, Promise.race([outcome(first), death.promise]));
    const hasCrashed = ended === 'died';
    if (hasCrashed) {
      const second = await boot(true);
      ended = await within(clock, deadline, recover(second, clock, outcome));
    }
    return {
      ...log,
      ...(typeof ended === 'object' && { outcome: ended }),
      hasCrashed,
    };
  } finally {
    // Nothing of a turn that did not end continues.
    for (const probe of probes) probe.dead = true;
    for (const each of opened) await each.close();
  }
}

/** The clock of a process, whose intervals end with it. */
function clockOf(clock: FakeClock, timers: Set<() => void>): Clock {
  return {
    now: clock.now,
    sleep: clock.sleep,
    every(ms, fn) {
      const cancel = clock.every(ms, fn);
      timers.add(cancel);
      return () => {
        timers.delete(cancel);
        cancel();
      };
    },
  };
}

/** Takes over what the dead process has left, and sends the turn again, as its client does. */
async function recover(
  process: SimulatedProcess,
  clock: FakeClock,
  outcome: (process: SimulatedProcess) => Promise<Outcome>,
): Promise<Outcome> {
  let ended: Outcome | undefined;
  // A sub-agent's run in the background may wait for the one before it.
  for (let idle = 0; idle < 2; ) {
    await clock.advance(process.ttl + 1);
    const found = await process.inside(() => process.recover());
    idle = found === 0 ? idle + 1 : 0;
    if (idle === 1) ended ??= await outcome(process);
  }
  return ended ?? (await outcome(process));
}

/** Copies a recorded session into the store of a run; returns the snapshot that the turn starts from. */
async function importTurn(
  store: Store,
  agent: string,
  { document, turn: { parentId, input } }: NonNullable<TurnCase['recorded']>,
): Promise<string | undefined> {
  await store.maintenance?.importSession({ agent }, document);
  if (parentId === undefined || input.resume === undefined) return parentId;
  // An interrupt is answered once in a session.
  const target = { sessionId: crypto.randomUUID(), snapshotId: crypto.randomUUID() };
  await store.timeline?.fork({ agent }, parentId, target);
  return target.snapshotId;
}

/** The call of a client, which sends the same request again after a crash. */
function clientOf(from: string | undefined, context: CrashTestOptions['context']) {
  const requestId = crypto.randomUUID();
  const place = from === undefined ? { sessionId: crypto.randomUUID() } : { snapshotId: from };
  return {
    requestId,
    accept: true,
    throwOnError: false as const,
    ...place,
    ...defined({ context }),
  };
}

/** Sends the turn to a process, and reads how it ended. */
export async function outcomeIn(
  { agent, failure, inside }: SimulatedProcess,
  input: TurnCase['input'],
  call: RunOptions & { readonly requestId: string; readonly throwOnError: false },
): Promise<Outcome> {
  const output: Partial<Output> = await inside(
    () => agent.run(input, call) as Promise<Output>,
  ).catch((error: unknown) => ({ error: toErrorBody(error) }));
  const { sessionId, finishReason, error } = output;
  const { owner } = call;
  const found =
    sessionId === undefined
      ? undefined
      : await agent.getSnapshot({ sessionId }, defined({ owner }));
  const { messages = [], custom, artifacts } = found?.state ?? {};
  const value = {
    finishReason: finishReason ?? 'failed',
    messages: shownMessages(messages),
    ...defined({ custom, artifacts, output: output.output }),
  } as unknown as Json;
  return { value: masked(value), ...(error && { error: failure() ?? error.message }) };
}

/** Waits at most until a deadline of the real clock. The clock of the test follows it, for work that waits for it. */
async function within<Value>(
  clock: FakeClock,
  deadline: number,
  work: Promise<Value>,
): Promise<Value | 'late'> {
  let isDone = false;
  const done = work.finally(() => {
    isDone = true;
  });
  const pump = async (): Promise<'late'> => {
    // Turns with a scripted model are over by then, and so always have the same points.
    await systemClock.sleep(100);
    while (!isDone && performance.now() < deadline) {
      await systemClock.sleep(20);
      await clock.advance(20);
    }
    return 'late';
  };
  return await Promise.race([done, pump()]);
}
