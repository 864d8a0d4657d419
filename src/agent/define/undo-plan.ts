import { sha256 } from '../../core/json/hash.ts';
import { defined, type Json } from '../../core/json/json.ts';
import type { Message, ToolRequestPart } from '../../protocol/message.ts';
import { requestKey } from '../../protocol/messages.ts';
import { endsTurn, type Snapshot } from '../../protocol/snapshot.ts';
import { recordOf } from '../../protocol/tool-record.ts';
import type { UndoStatus } from '../../protocol/undo.ts';
import type { StoredEffect } from '../../store/contract/store.ts';

/** A call that may have had an effect, as a message or the store has it. */
export interface CallRecord {
  readonly key: string;
  readonly tool: string;
  readonly agent?: string;
  readonly input?: Json;
  /** In a list of one; absent while it is not known. */
  readonly output?: readonly [Json];
  readonly at: string;
  readonly snapshotId: string;
  /** The record of the store, which is needed to undo the call. */
  readonly stored?: StoredEffect;
}

/** An effect of a plan, with the key of its call. */
export interface PlannedCall extends CallRecord {
  readonly undo: UndoStatus;
  readonly reason?: string;
}

type PlacedSnapshot = Pick<
  Snapshot,
  'snapshotId' | 'parentId' | 'status' | 'event' | 'label' | 'createdAt'
>;

/** Where a session stands, without its states. */
export interface Place {
  readonly headId: string;
  readonly targetId: string;
  readonly snapshots: readonly PlacedSnapshot[];
}

/** The snapshots that a restore leaves: the path from the head, and the turns that came to nothing and hang on it. */
export interface LeftPath {
  readonly byId: ReadonlyMap<string, PlacedSnapshot>;
  /** From the root to the target. */
  readonly kept: ReadonlySet<string>;
  /** The snapshots that the head's path has and the target's has not. */
  readonly left: readonly string[];
  /** The snapshots that the target's path has and the head's has not. */
  readonly ahead: ReadonlySet<string>;
  /** Failed, aborted and expired turns that started there, or where the two paths part. */
  readonly hanging: readonly string[];
  /** Whether a turn that started from this snapshot hangs on the path. */
  hangs(parentId: string | undefined): boolean;
}

export function leftPath({ headId, targetId, snapshots }: Place): LeftPath {
  const byId = new Map(snapshots.map((each) => [each.snapshotId, each]));
  const kept = pathIn(byId, targetId);
  const present = pathIn(byId, headId);
  const ahead = new Set([...kept].filter((id) => !present.has(id)));
  const path = [...present];
  const left = path.filter((id) => !kept.has(id));
  const joint = path.find((id) => kept.has(id));
  const from = new Set([...left, ...(joint === undefined ? [] : [joint])]);
  const hangs = (parentId: string | undefined): boolean =>
    parentId !== undefined && from.has(parentId);
  const lost = snapshots.filter(
    ({ status, parentId }) => status !== 'succeeded' && status !== 'pending' && hangs(parentId),
  );
  return { byId, kept, left, ahead, hanging: lost.map((each) => each.snapshotId), hangs };
}

/** A snapshot and its ancestors. */
function pathIn(byId: ReadonlyMap<string, PlacedSnapshot>, id: string): ReadonlySet<string> {
  const path = new Set<string>();
  for (let at: string | undefined = id; at !== undefined && !path.has(at); ) {
    path.add(at);
    at = byId.get(at)?.parentId;
  }
  return path;
}

/** The snapshots whose own calls the messages of the head do not have, because the history was trimmed. */
export function trimmedFrom(
  { left, byId }: LeftPath,
  messages: readonly Message[],
): readonly string[] {
  const marked = new Set(messages.map(({ metadata }) => metadata?.snapshotId));
  return left.filter((id) => {
    const event = byId.get(id)?.event;
    return event !== undefined && endsTurn(event) && !marked.has(id);
  });
}

/** The calls in messages that may have had an effect. `snapshotId` is that of calls whose turn is not marked. */
export function callsIn(messages: readonly Message[], snapshotId: string): readonly CallRecord[] {
  const calls: CallRecord[] = [];
  let turn: Omit<CallRecord, 'snapshotId'>[] = [];
  const requests = new Map<string, ToolRequestPart>();
  const endTurn = (id: string): void => {
    calls.push(...turn.map((call) => ({ ...call, snapshotId: id })));
    turn = [];
  };
  for (const { content, metadata } of messages) {
    for (const part of content) {
      if ('toolRequest' in part) requests.set(requestKey(part.toolRequest), part);
      const record = recordOf(part);
      if (record === undefined) continue;
      turn.push(...(record.calls ?? []).map((each) => defined(each)));
      const { call } = record;
      if (call === undefined) continue;
      const about = 'toolResponse' in part ? part.toolResponse : undefined;
      const request = 'toolRequest' in part ? part : about && requests.get(requestKey(about));
      const input = record.input ?? request?.toolRequest.input;
      const tool = about?.name ?? request?.toolRequest.name ?? '';
      const result = about === undefined ? part.metadata?.pendingOutput : about.output;
      const output = part.metadata?.error === undefined ? result : undefined;
      turn.push({ ...call, tool, ...(input !== undefined && { input }), ...toOutput(output) });
    }
    if (typeof metadata?.snapshotId === 'string') endTurn(metadata.snapshotId);
  }
  endTurn(snapshotId);
  return calls;
}

function toOutput(output: Json | undefined): Pick<CallRecord, 'output'> {
  return output === undefined ? {} : { output: [output] };
}

/** The sources of a plan. */
export interface PlanFacts extends Place {
  readonly path: LeftPath;
  /** The calls in the messages of the target, which a restore keeps. */
  readonly keptCalls: readonly CallRecord[];
  /** The calls in the messages of the head and of the turns that hang on its path. */
  readonly calls: readonly CallRecord[];
  readonly stored: readonly StoredEffect[];
  /** Runs that died and have not left a snapshot. */
  readonly deadRuns: ReadonlySet<string>;
  /** The snapshot of this session at which another session was forked from it; absent: not known any more. */
  readonly forkPoints: ReadonlyMap<string, string>;
  /** Why a stored effect cannot be undone by the present code; `undefined`: it can. */
  whyNot(effect: StoredEffect): string | undefined;
  /** Why a call that the store has no record of cannot be undone. */
  whyUnknown(call: CallRecord): string;
}

/** The effects that a restore leaves behind: those that cannot be undone first, and then the newest first. */
export function planEffects(facts: PlanFacts): readonly PlannedCall[] {
  const { path, stored, deadRuns } = facts;
  const kept = new Set(facts.keptCalls.map(({ key }) => key));
  const seen = new Map<string, CallRecord>();
  for (const call of facts.calls) if (!kept.has(call.key)) seen.set(call.key, call);
  const turns = new Set([...path.left, ...path.hanging, ...deadRuns]);
  const present = new Set(facts.calls.map(({ key }) => key));
  // Nothing is done again, so the plan says what the target's path has lost.
  const isLost = ({ key, runId, undoneAt }: StoredEffect): boolean =>
    undoneAt !== undefined && !present.has(key) && (kept.has(key) || path.ahead.has(runId));
  for (const row of stored) {
    const isLeft = !kept.has(row.key) && (seen.has(row.key) || turns.has(row.runId));
    if (!isLeft && !isLost(row)) continue;
    // The message may have another answer, of a middleware.
    const { key, tool, agent, input, at, output, runId } = row;
    seen.set(key, defined({ key, tool, agent, input, at, output, snapshotId: runId, stored: row }));
  }
  const planned = [...seen.values()].map((call) => ({ ...call, ...statusOf(facts, call) }));
  const order = ({ undo }: PlannedCall): number => (undo === 'impossible' ? 0 : 1);
  return planned
    .map((call, place) => ({ call, place }))
    .sort((a, b) => {
      if (order(a.call) !== order(b.call)) return order(a.call) - order(b.call);
      if (a.call.at !== b.call.at) return a.call.at < b.call.at ? 1 : -1;
      return b.place - a.place;
    })
    .map(({ call }) => call);
}

function statusOf(
  facts: PlanFacts,
  call: CallRecord,
): { readonly undo: UndoStatus; readonly reason?: string } {
  const { stored } = call;
  if (stored === undefined) return { undo: 'impossible', reason: facts.whyUnknown(call) };
  if (stored.undoneAt !== undefined) return { undo: 'done' };
  if (call.output === undefined) {
    return {
      undo: 'impossible',
      reason: 'Its result is not known: it failed, or its process died.',
    };
  }
  const reason = facts.whyNot(stored);
  if (reason !== undefined) return { undo: 'impossible', reason };
  return { undo: isNeeded(facts, stored) ? 'needed by another branch' : 'possible' };
}

/** Whether a labelled snapshot or a fork relies on an effect. */
function isNeeded({ path, snapshots, forkPoints }: PlanFacts, effect: StoredEffect): boolean {
  const { byId, kept } = path;
  const relies = (id: string): boolean => {
    const at = byId.get(id);
    // It was pruned, so its path is not known.
    if (at === undefined) return true;
    if (byId.has(effect.runId)) return pathIn(byId, id).has(effect.runId);
    // The turn has no snapshot of its own.
    return !kept.has(id) && at.createdAt >= effect.at;
  };
  const labelled = snapshots.filter(
    (each) => each.label !== undefined && each.status === 'succeeded',
  );
  if (labelled.some(({ snapshotId }) => relies(snapshotId))) return true;
  return effect.sharedWith.some((session) => {
    const point = forkPoints.get(session);
    return point === undefined || relies(point);
  });
}

/** Names what a person has looked at: another head, effect or status gives another id. */
export function planIdOf({ headId, targetId }: Place, planned: readonly PlannedCall[]): string {
  const effects = planned.map(({ key, undo }) => [key, undo]);
  return sha256(JSON.stringify(['waymark.undo', headId, targetId, effects]));
}

/** The key under which a call is undone. */
export function undoKeyOf(key: string): string {
  return sha256(`undo\n${key}`);
}
