import { internalsOf } from '../agent/define/create-agent.ts';
import type { App } from '../app.ts';
import { toWaymarkError } from '../core/error.ts';
import { sha256 } from '../core/json/hash.ts';
import { defined } from '../core/json/json.ts';
import { checkOptions } from '../core/options.ts';
import type { Message } from '../protocol/message.ts';
import type { Cost } from '../protocol/turn.ts';
import { addCost } from '../protocol/usage.ts';
import type { SessionExport } from '../session/export-session.ts';
import { type FoundSession, findSessions } from './find-sessions.ts';
import { type ReplayOptions, replayOptionNames } from './options.ts';
import { recordedSession, type SkippedTurn } from './recorded-session.ts';
import { replaySession, type SessionEvent } from './replay-session.ts';
import { type ReplayReport, type TurnReport, toReport } from './report.ts';
import { openResults } from './results-file.ts';

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
  const { concurrency = 4, budget = {}, onProgress, signal, resume } = options;
  const file = resume === undefined ? undefined : await openResults(resume, fingerprint(options));
  const earlier = file?.earlier ?? [];
  const doneSessions = new Set<string>();
  const doneSnapshots = new Set<string>();
  let turns: TurnReport[] = [];
  const skipped: SkippedTurn[] = [];
  let sessions = 0;
  let divergent = 0;
  const spent = { tokens: 0, cost: {} as Cost, turns: 0, isOver: false };

  const note = (event: SessionEvent): void => {
    if ('skipped' in event) skipped.push(event.skipped);
    else turns.push(event.turn);
    const turn = 'turn' in event ? event.turn : undefined;
    if (turn && turn.divergences.length > 0) divergent++;
    onProgress?.({ sessions, turns: turns.length, divergent, ...defined({ turn }) });
  };
  const add = async (event: SessionEvent): Promise<void> => {
    if ('turn' in event) {
      const { tokens, cost = {} } = event.turn.replayed;
      spent.tokens += tokens;
      spent.cost = addCost(spent.cost, cost);
      spent.turns++;
    }
    note(event);
    await file?.add(event);
  };
  const mayContinue = (): boolean => {
    signal?.throwIfAborted();
    const { tokens = Infinity, cost = {}, turns: most = Infinity } = budget;
    spent.isOver ||= spent.tokens >= tokens || spent.turns >= most;
    spent.isOver ||= Object.entries(cost).some(([name, sum]) => (spent.cost[name] ?? 0) >= sum);
    return !spent.isOver;
  };
  const replayOne = async (found: FoundSession): Promise<void> => {
    sessions++;
    if (doneSessions.has(found.name)) return;
    const read = await readSession(found, app, options);
    if (!('turns' in read)) await add(read);
    else {
      // A conversation starts over: its answers depend on each other.
      if (options.mode === 'conversation')
        turns = turns.filter(({ sessionId }) => sessionId !== read.session.sessionId);
      let isCut = false;
      const goOn = (): boolean => {
        isCut = !mayContinue();
        return !isCut;
      };
      const { owner } = found;
      const run = { app, owner, options, done: doneSnapshots, mayContinue: goOn };
      for await (const event of replaySession(read, run)) await add(event);
      if (isCut) return;
    }
    await file?.add({ session: found.name });
  };

  for (const line of earlier) {
    if ('session' in line) doneSessions.add(line.session);
    if (!('turn' in line || 'skipped' in line)) continue;
    const { snapshotId } = 'turn' in line ? line.turn : line.skipped;
    if (snapshotId !== undefined) doneSnapshots.add(snapshotId);
    note(line);
  }
  const found = findSessions(app, options.sessions);
  const worker = async (): Promise<void> => {
    for await (const session of shared(found)) {
      signal?.throwIfAborted();
      if (spent.isOver) return;
      await replayOne(session);
    }
  };
  await Promise.all(Array.from({ length: Math.max(1, concurrency) }, worker));
  return toReport(turns, {
    skipped,
    sessions,
    ...(spent.isOver && { stopped: 'budget' as const }),
  });
}

/** Lets several loops read one iterator: leaving a loop does not end it. */
async function* shared<Item>(items: AsyncGenerator<Item>): AsyncGenerator<Item> {
  for (let next = await items.next(); !next.done; next = await items.next()) yield next.value;
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

/** Identifies a replay by its options, as far as they can be compared. */
function fingerprint(options: ReplayOptions): string {
  const { sessions, with: changes, tools, mode, branches, ignore } = options;
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
