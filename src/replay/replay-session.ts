import type { AgentSpec, PromptChanges } from '../agent/contract/spec.ts';
import { internalsOf } from '../agent/define/create-agent.ts';
import { lastRound } from '../agent/turn/turn-state.ts';
import type { App } from '../app.ts';
import { type Json, jsonEqual } from '../core/json/json.ts';
import { pendingInterrupts } from '../protocol/messages.ts';
import type { Input } from '../protocol/turn.ts';
import { compareTurns, type Divergence, isIgnored, type Unknown } from './compare.ts';
import { givenTo } from './given-memory.ts';
import type { ReplayChanges, ReplayOptions } from './options.ts';
import { resumeOf } from './recorded-input.ts';
import {
  type RecordedSession,
  type RecordedTurn,
  type SkippedTurn,
  turnsUpTo,
} from './recorded-session.ts';
import { createScratch, type ReplayedSide, replayTurn, type Scratch } from './replay-turn.ts';
import { shownSide, type TurnReport } from './report.ts';
import { scoreTurn } from './scorers.ts';

/** Reported so that a model that was never called does not seem to answer as recorded. */
const modelNotUsed: Divergence = {
  kind: 'model',
  path: '/model',
  change: 'added',
  replayed:
    'The model of the replay was not called: the handler names another one. Pass it the `model` of its second argument.',
};

/** The changes that an agent over a prompt can be replayed with. */
const promptChanges = ['system', 'config', 'tools'] as const satisfies (keyof PromptChanges)[];

export type SessionEvent = { readonly turn: TurnReport } | { readonly skipped: SkippedTurn };

export interface SessionRun {
  readonly app: App;
  readonly options: ReplayOptions;
  /** The owner whose sessions are replayed. */
  readonly owner?: string | undefined;
  /** Turns that an earlier replay has done. */
  readonly done: ReadonlySet<string>;
  /** Whether there is budget for another turn. Throws when the replay was stopped. */
  mayContinue(): boolean;
}

/** Replays the turns of a session, parents first. */
export async function* replaySession(
  session: RecordedSession,
  run: SessionRun,
): AsyncGenerator<SessionEvent> {
  const { options } = run;
  const changes = typeof options.with === 'function' ? options.with(session) : (options.with ?? {});
  const app = changes.app ?? run.app;
  const { agent, sessionId } = session.session;
  const reason = refusal(app, agent, changes, options);
  if (reason !== undefined) {
    yield { skipped: { sessionId, reason } };
    return;
  }
  for (const skipped of session.skipped)
    if (!run.done.has(skipped.snapshotId ?? '')) yield { skipped };
  // Without branches, those on the path to the head.
  const turns =
    options.branches === 'head' ? turnsUpTo(session, session.session.headId) : session.turns;
  if (turns.every(({ snapshotId }) => run.done.has(snapshotId))) return;
  await using scratch = await createScratch(app, session, changes);
  const places = new Map<string, string | undefined>();
  for (const turn of turns) {
    if (options.mode !== 'conversation' && run.done.has(turn.snapshotId)) continue;
    if (!run.mayContinue()) return;
    const { owner } = run;
    const next = await nextTurn({ app, owner, scratch, session, turn, changes, options, places });
    const { snapshotId, turnIndex } = turn;
    yield typeof next === 'string'
      ? { skipped: { sessionId, snapshotId, turnIndex, reason: next } }
      : { turn: next };
  }
}

function refusal(
  app: App,
  name: string,
  changes: ReplayChanges,
  { customAgents = 'skip' }: ReplayOptions,
): string | undefined {
  const agent = app.agents().find((each) => each.name === name);
  if (agent === undefined) return `The app has no agent "${name}".`;
  const isCustom = internalsOf(agent).spec.withChanges === undefined;
  if (!isCustom) return undefined;
  if (customAgents === 'skip')
    return `Agent "${name}" is a custom agent: its code would run. Set \`customAgents: 'run'\` (--custom-agents on the command line) if it may.`;
  const unused = promptChanges.find((change) => changes[change] !== undefined);
  if (unused === undefined) return undefined;
  return `Agent "${name}" is a custom agent, which has no \`${unused}\` to change. Replay it with an app that has the changed code.`;
}

interface NextTurn {
  readonly app: App;
  readonly owner: string | undefined;
  readonly scratch: Scratch;
  readonly session: RecordedSession;
  readonly turn: RecordedTurn;
  readonly changes: ReplayChanges;
  readonly options: ReplayOptions;
  /** In a conversation: the replayed snapshot for each recorded one; `undefined` for a turn that failed. */
  readonly places: Map<string, string | undefined>;
}

async function nextTurn(next: NextTurn): Promise<TurnReport | string> {
  const { app, owner, scratch, session, turn, changes, options, places } = next;
  const { mode = 'turns', tools = 'recorded', context = {}, signal } = options;
  const { parentId } = turn;
  const carries = mode === 'conversation' && parentId !== undefined && places.has(parentId);
  const from = carries ? places.get(parentId) : parentId;
  if (carries && from === undefined) {
    places.set(turn.snapshotId, undefined);
    return 'The turn before it was not answered in this replay.';
  }
  const input =
    carries && from !== undefined ? await carriedInput(scratch, turn, from) : turn.input;
  if (input === undefined) {
    places.set(turn.snapshotId, undefined);
    return 'The turn answers an interrupt, which the replayed conversation did not have.';
  }
  const model = typeof changes.model === 'function' ? changes.model(turn) : changes.model;
  // An unknown name would make every turn fail, and each would be reported as different.
  if (typeof model === 'string') app.registry.lookup(`/model/${model}`);
  const own = typeof context === 'function' ? context(session) : context;
  const { document } = session;
  const memory = await givenTo(turn.snapshotId, {
    ...{ spec: scratch.agent.spec, document, owner, context: own },
  });
  if (typeof memory === 'string') {
    places.set(turn.snapshotId, undefined);
    return memory;
  }
  const replayed = await replayTurn(scratch, turn, {
    input,
    from,
    tools,
    model,
    context: own,
    memory,
    signal,
  });
  places.set(turn.snapshotId, replayed.snapshotId);
  return await reportOf(next, replayed);
}

/** The recorded input; answers are given to the interrupts that the replayed conversation has. */
async function carriedInput(
  scratch: Scratch,
  turn: RecordedTurn,
  from: string,
): Promise<Input | undefined> {
  const [answers] = turn.messages;
  if (turn.input.resume === undefined || answers === undefined) return turn.input;
  const state = await scratch.stateAt(from);
  const interrupts = state === undefined ? [] : pendingInterrupts(lastRound(state.history));
  const resume = resumeOf(interrupts, answers);
  const given = (resume.respond?.length ?? 0) + (resume.restart?.length ?? 0);
  return interrupts.length > 0 && given === interrupts.length ? { resume } : undefined;
}

async function reportOf(
  { scratch, turn, options }: NextTurn,
  { side, missing, ignoresModel }: ReplayedSide,
): Promise<TurnReport> {
  const unknown = unknownEffects(turn, scratch.agent.spec);
  const { tolerance, ignore = [], score = [] } = options;
  const divergences = [
    ...compareTurns(turn, side, unknown, tolerance),
    ...(ignoresModel ? [modelNotUsed] : []),
  ].filter((divergence) => !isIgnored(divergence, ignore));
  const scored = { input: turn.input, recorded: turn, replayed: side, divergences };
  const { snapshotId, turnIndex, sessionId, agent } = turn;
  return {
    sessionId,
    snapshotId,
    turnIndex,
    agent,
    input: turn.input,
    divergences,
    scores: await scoreTurn(score, scored),
    missingEffects: [...missing, ...Array.from(unknown, unknownText)],
    recorded: shownSide(turn),
    replayed: shownSide(side),
  };
}

function unknownText(part: 'custom' | 'artifacts'): string {
  const what = part === 'custom' ? 'custom state' : part;
  return `The tools of this turn changed the ${what}, and an older version recorded it without their effects.`;
}

/**
 * Changes of a prompt agent's turn that have no known cause: the state changed, and no tool call has a record of it. Only tools change
 * the state of such an agent, so an older version wrote the session.
 */
function unknownEffects(
  { toolCalls, before, custom, artifacts, parentId }: RecordedTurn,
  { withChanges, initialState }: AgentSpec,
): Unknown {
  const unknown = new Set<'custom' | 'artifacts'>();
  if (withChanges === undefined || toolCalls.length === 0) return unknown;
  const check = (part: 'custom' | 'artifacts', start: unknown, end: unknown): void => {
    const isRecorded = toolCalls.some(({ record }) => record?.[part] !== undefined);
    if (!isRecorded && !jsonEqual(start as Json, end as Json)) unknown.add(part);
  };
  const start = before.custom ?? (parentId === undefined ? initialState : undefined) ?? null;
  check('custom', start, custom ?? null);
  check('artifacts', before.artifacts, artifacts);
  return unknown;
}
