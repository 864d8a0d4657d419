import { internalsOf } from '../agent/define/create-agent.ts';
import type { App } from '../app.ts';
import { toWaymarkError } from '../core/error.ts';
import { sha256 } from '../core/json/hash.ts';
import { checkOptions } from '../core/options.ts';
import type { Message } from '../protocol/message.ts';
import type { Cost } from '../protocol/turn.ts';
import type { SessionExport } from '../session/export-session.ts';
import type { FoundSession } from './find-sessions.ts';
import { findSessions } from './find-sessions.ts';
import { type ReplayOptions, replayOptionNames } from './options.ts';
import { recordedSession, type SkippedTurn } from './recorded-session.ts';
import { replaySession, type SessionEvent } from './replay-session.ts';
import { addCosts, type ReplayReport, type TurnReport, toReport } from './report.ts';
import { openResults, type ResultLine, type ResultsFile } from './results-file.ts';

/**
 * Runs recorded turns again and reports what differs. The sessions are copied into memory: the store that they come from is only
 * read, and tools are answered from the recording unless `tools` says otherwise.
 *
 * @example
 * const report = await replay(app, {
 *   sessions: { agent: 'trip', query: 'hotel', limit: 50 },
 *   with: { system: newPrompt },
 * });
 * report.turns.filter((turn) => turn.divergences.length > 0);
 */
export async function replay(app: App, options: ReplayOptions): Promise<ReplayReport> {
  checkOptions(options, replayOptionNames, 'replay()');
  const { concurrency = 4, signal } = options;
  const work = await openWork(app, options);
  const found = findSessions(app, options.sessions);
  const worker = async (): Promise<void> => {
    for await (const session of shared(found)) {
      signal?.throwIfAborted();
      if (work.isSpent()) return;
      await work.replay(session);
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, concurrency) }, worker));
  return work.report();
}

/** Lets several loops read one iterator: leaving a loop does not end it. */
async function* shared<Item>(items: AsyncGenerator<Item>): AsyncGenerator<Item> {
  for (let next = await items.next(); !next.done; next = await items.next()) yield next.value;
}

interface Work {
  isSpent(): boolean;
  replay(session: FoundSession): Promise<void>;
  report(): ReplayReport;
}

class BudgetSpent extends Error {}

async function openWork(app: App, options: ReplayOptions): Promise<Work> {
  const { budget = {}, onProgress, signal, resume } = options;
  const file = resume === undefined ? undefined : await openResults(resume, fingerprint(options));
  const turns: TurnReport[] = [];
  const skipped: SkippedTurn[] = [];
  const earlier = readEarlier(file);
  let sessions = 0;
  let isSpent = false;
  let divergent = 0;
  const spent = { tokens: 0, cost: {} as Cost, turns: 0 };

  const checkGoOn = (): void => {
    signal?.throwIfAborted();
    const { tokens = Infinity, cost = {}, turns: most = Infinity } = budget;
    isSpent ||= spent.tokens >= tokens || spent.turns >= most;
    isSpent ||= Object.entries(cost).some(([name, sum]) => (spent.cost[name] ?? 0) >= sum);
    if (isSpent) throw new BudgetSpent();
  };
  const note = (event: SessionEvent): void => {
    if ('skipped' in event) skipped.push(event.skipped);
    else turns.push(event.turn);
    if ('turn' in event && event.turn.divergences.length > 0) divergent++;
    const turn = 'turn' in event ? { turn: event.turn } : {};
    onProgress?.({ sessions, turns: turns.length, divergent, ...turn });
  };
  // A conversation starts over: its answers depend on each other.
  const forget = (sessionId: string): void => {
    const others = turns.filter((turn) => turn.sessionId !== sessionId);
    turns.splice(0, turns.length, ...others);
  };
  const add = async (event: SessionEvent): Promise<void> => {
    if ('turn' in event) {
      const { tokens, cost = {} } = event.turn.replayed;
      spent.tokens += tokens;
      spent.cost = addCosts([spent.cost, cost]);
      spent.turns++;
    }
    note(event);
    await file?.add(event);
  };
  for (const event of earlier.events) note(event);

  return {
    isSpent: () => isSpent,
    async replay(session) {
      sessions++;
      if (earlier.sessions.has(session.name)) return;
      const read = await readSession(session, app, options);
      if (!('turns' in read)) await add(read);
      else {
        if (options.mode === 'conversation') forget(read.session.sessionId);
        try {
          const run = { app, options, done: earlier.snapshots, checkGoOn };
          for await (const event of replaySession(read, run)) await add(event);
        } catch (error) {
          if (error instanceof BudgetSpent) return;
          throw error;
        }
      }
      await file?.add({ session: session.name });
    },
    report: () => toReport(turns, { skipped, sessions, ...(isSpent && { stopped: 'budget' }) }),
  };
}

/** Reads a session; one that cannot be read is skipped, and says why. */
async function readSession(
  found: FoundSession,
  app: App,
  options: ReplayOptions,
): Promise<ReturnType<typeof recordedSession> | { readonly skipped: SkippedTurn }> {
  const { name } = found;
  try {
    const document = await found.read();
    if (document === undefined) return { skipped: { sessionId: name, reason: 'No such session.' } };
    return recordedSession(document, {
      initialMessages: initialMessagesOf(app, document, options),
    });
  } catch (error) {
    return { skipped: { sessionId: name, reason: toWaymarkError(error).message } };
  }
}

/** The messages that sessions of an agent begin with, which belong to no input. */
function initialMessagesOf(
  app: App,
  { session }: SessionExport,
  { with: changes }: ReplayOptions,
): readonly Message[] {
  const changed = typeof changes === 'object' ? changes.app : undefined;
  const agent = (changed ?? app).agents().find(({ name }) => name === session?.agent);
  return (agent && internalsOf(agent).spec.initialMessages) ?? [];
}

/** The results of an earlier run of this replay. */
function readEarlier(file: ResultsFile | undefined): {
  readonly events: readonly SessionEvent[];
  readonly sessions: ReadonlySet<string>;
  readonly snapshots: ReadonlySet<string>;
} {
  const lines: readonly ResultLine[] = file?.earlier ?? [];
  const events = lines.filter((line) => 'turn' in line || 'skipped' in line);
  return {
    events,
    sessions: new Set(lines.flatMap((line) => ('session' in line ? [line.session] : []))),
    snapshots: new Set(
      events.flatMap((event) =>
        'turn' in event ? [event.turn.snapshotId] : (event.skipped.snapshotId ?? []),
      ),
    ),
  };
}

/** Identifies a replay by its options, as far as they can be compared. */
function fingerprint({
  sessions,
  with: changes,
  tools,
  mode,
  branches,
  ignore,
}: ReplayOptions): string {
  const described = JSON.stringify([sessions, changes, tools, mode, branches, ignore], describe);
  return sha256(described).slice(0, 16);
}

function describe(_key: string, value: unknown): unknown {
  if (typeof value === 'function') return `function ${value.name}`;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  // Stores, apps and models are the same if they have the same name.
  if ('getSnapshot' in value || 'defineAgent' in value) return 'name' in value ? value.name : 'app';
  if ('run' in value || 'doStream' in value)
    return 'name' in value ? value.name : 'modelId' in value ? value.modelId : 'model';
  return value;
}
