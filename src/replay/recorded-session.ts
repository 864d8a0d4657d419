import { lastRound } from '../agent/turn/turn-state.ts';
import { defined, type Json } from '../core/json/json.ts';
import { isExecutedByCaller } from '../generate/tool/caller-tools.ts';
import { withoutTree } from '../protocol/artifacts.ts';
import type { Message } from '../protocol/message.ts';
import type { SessionInfo } from '../protocol/session.ts';
import type { Artifact } from '../protocol/state.ts';
import type { FinishReason, Input, Usage } from '../protocol/turn.ts';
import type { SessionExport } from '../session/export-session.ts';
import { fromSessionExport, type ImportRow } from '../session/import-session.ts';
import type { SessionState } from '../session/session-state.ts';
import { inputOf } from './recorded-input.ts';
import { type ToolCall, toolCallsOf } from './tool-calls.ts';

/** The outcome of a turn, recorded or replayed. */
export interface TurnSide {
  /** The messages after the input. */
  readonly messages: readonly Message[];
  /** The tool calls of the turn. */
  readonly toolCalls: readonly ToolCall[];
  /** The custom state after the turn. */
  readonly custom?: Json;
  /** The artifacts after the turn. */
  readonly artifacts: readonly Artifact[];
  /** How the turn ended. */
  readonly finishReason?: FinishReason;
  /** Why the turn failed. */
  readonly error?: { readonly status: string; readonly message: string };
  /** The structured output; recordings have only the text that it was read from. */
  readonly output?: Json;
  /** Tokens and cost of the turn. */
  readonly usage?: Usage;
  /** Milliseconds. */
  readonly time?: number;
}

/** One turn of a recorded session. */
export interface RecordedTurn extends TurnSide {
  /** The session. */
  readonly sessionId: string;
  /** The name of the agent. */
  readonly agent: string;
  /** The snapshot that the turn ended with. */
  readonly snapshotId: string;
  /** The snapshot that the turn started from; absent for the first turn of a session. */
  readonly parentId?: string;
  /** The index of the turn in its session. */
  readonly turnIndex: number;
  /** The input of the turn. */
  readonly input: Input;
  /** The state that the turn started from. */
  readonly before: Pick<TurnSide, 'messages' | 'custom' | 'artifacts'>;
}

/** A turn that cannot be replayed, and why. */
export interface SkippedTurn {
  /** The session. */
  readonly sessionId: string;
  /** The snapshot of the turn. */
  readonly snapshotId?: string;
  /** The index of the turn in its session. */
  readonly turnIndex?: number;
  /** Why it cannot be replayed. */
  readonly reason: string;
}

/** A session that was read from a store or a file. */
export interface RecordedSession {
  /** The session. */
  readonly session: SessionInfo;
  /** The turns that can be replayed, parents first. */
  readonly turns: readonly RecordedTurn[];
  /** Turns that cannot be replayed. */
  readonly skipped: readonly SkippedTurn[];
  /** The document that it was read from. */
  readonly document: SessionExport;
}

/**
 * Reads the turns of an exported session.
 *
 * @example
 * const session = recordedSession(JSON.parse(await readFile('session.json', 'utf8')));
 * session.turns[0]?.toolCalls;
 */
export function recordedSession(
  document: SessionExport,
  options: { readonly initialMessages?: readonly Message[] } = {},
): RecordedSession {
  const { session, snapshots } = fromSessionExport(document);
  const rows = new Map(snapshots.map((row) => [row.snapshot.snapshotId, row]));
  const turns: RecordedTurn[] = [];
  const skipped: SkippedTurn[] = [];
  for (const row of snapshots) {
    const { event, snapshotId, turnIndex } = row.snapshot;
    if (event !== 'turnEnd' && event !== 'detach') continue;
    // The first snapshot of a fork is a copy of another session's.
    if (session.forkedFrom && row === snapshots[0] && row.snapshot.parentId === undefined) continue;
    const turn = readTurn(session, row, baseOf(row, rows), options.initialMessages ?? []);
    if (typeof turn !== 'string') turns.push(turn);
    else skipped.push({ sessionId: session.sessionId, snapshotId, turnIndex, reason: turn });
  }
  return { session, turns, skipped, document };
}

/** The turns on the path to a snapshot, oldest first. */
export function turnsUpTo(
  { turns, document }: RecordedSession,
  snapshotId: string | undefined,
): readonly RecordedTurn[] {
  const parents = new Map(
    document.snapshots.map((each) => [String(each.snapshotId), each.parentId]),
  );
  const path = new Set<string>();
  for (let id: unknown = snapshotId; typeof id === 'string'; id = parents.get(id)) path.add(id);
  return turns.filter((turn) => path.has(turn.snapshotId));
}

/** The snapshot before the turn: those of its tool iterations belong to it. */
function baseOf(row: ImportRow, rows: ReadonlyMap<string, ImportRow>): ImportRow | undefined {
  let parent = rows.get(row.snapshot.parentId ?? '');
  while (parent?.snapshot.event === 'toolIterationEnd')
    parent = rows.get(parent.snapshot.parentId ?? '');
  return parent;
}

function readTurn(
  session: SessionInfo,
  { snapshot, state }: ImportRow,
  base: ImportRow | undefined,
  initial: readonly Message[],
): RecordedTurn | string {
  const { status, finishReason, turnIndex, snapshotId } = snapshot;
  if (status === 'aborted' || finishReason === 'aborted')
    return 'The turn was stopped before it ended, so there is no result to compare with.';
  const turnsAfter = turnIndex - (base?.snapshot.turnIndex ?? -1);
  if (turnsAfter > 1)
    return `The snapshot has the result of ${turnsAfter} turns: the states between them were not stored.`;
  const { read, messages, toolCalls } = addedBy(base?.state, state, initial);
  if (typeof read === 'string') return read;
  const { error, usage } = snapshot;
  return {
    sessionId: session.sessionId,
    agent: session.agent,
    snapshotId,
    ...defined({ parentId: base?.snapshot.snapshotId, finishReason, error, usage }),
    turnIndex,
    input: withCallerTools(read.input, toolCalls),
    before: {
      ...sideOf([], base?.state),
      // Made when it is asked for: all turns together have the square of the session's messages.
      get messages() {
        return base?.state.history.toArray() ?? [];
      },
    },
    ...sideOf(messages, state),
    toolCalls,
    ...timeOf(snapshot),
  };
}

/** Adds the tools that the caller brought and executed; only their names are stored. */
function withCallerTools(input: Input, calls: readonly ToolCall[]): Input {
  const names = new Set(
    calls.flatMap(({ name, interrupt }) => (isExecutedByCaller(interrupt) ? [name] : [])),
  );
  if (names.size === 0) return input;
  return { ...input, tools: [...names].map((name) => ({ name, inputSchema: { type: 'object' } })) };
}

function timeOf({ createdAt, updatedAt }: ImportRow['snapshot']): Pick<TurnSide, 'time'> {
  const time = Date.parse(updatedAt) - Date.parse(createdAt);
  return Number.isFinite(time) ? { time } : {};
}

function sideOf(
  messages: readonly Message[],
  state: SessionState | undefined,
): Pick<TurnSide, 'messages' | 'custom' | 'artifacts'> {
  return {
    messages,
    ...defined({ custom: state?.custom }),
    artifacts: withoutTree(state?.artifacts ?? []),
  };
}

/** The input of a turn, or why there is none, and the messages and tool calls that came after it. */
export function addedBy(
  base: SessionState | undefined,
  state: SessionState,
  initial: readonly Message[],
) {
  const before = base === undefined ? [] : lastRound(base.history);
  const added = newMessages(base, state);
  const read = inputOf(before, added, initial);
  const messages = typeof read === 'string' ? added : read.answer;
  // A plain message declines open requests before the turn: they are not calls of it.
  const isAnswer = typeof read !== 'string' && read.input.resume !== undefined;
  return { read, messages, toolCalls: toolCallsOf(isAnswer ? before : [], messages) };
}

/** The messages that a turn added. A turn that rewrote its history added what follows its last user message. */
function newMessages(base: SessionState | undefined, state: SessionState): readonly Message[] {
  if (base === undefined) return state.history.toArray();
  const common = base.history.commonLength(state.history);
  if (common === base.history.length) return state.history.toArray(common);
  const messages = state.history.toArray();
  const at = messages.findLastIndex(({ role }) => role === 'user');
  return at < 0 || at < common ? messages.slice(common) : messages.slice(at);
}
