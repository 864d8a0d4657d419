import * as v from 'valibot';
import type { Json } from '../../../core/json/json.ts';
import { jsonObject, jsonValue } from '../../../protocol/json-value.ts';
import { message } from '../../../protocol/message.ts';
import type { Artifact } from '../../../protocol/state.ts';
import { finishReason, type Init, type Input, usage } from '../../../protocol/turn.ts';
import { noCrashes } from '../../memory/claim.ts';
import type { Checkpoint, RunRow, SnapshotRow } from '../../memory/tables.ts';
import { iso, time } from '../sessions/journal-line.ts';
import { artifactHash, type NamedState, stateDelta, toDelta } from '../sessions/state-delta.ts';

// The claim has validated these values.
export const runRequest = v.object({
  mode: v.picklist(['attached', 'accepted', 'detached']),
  init: v.optional(v.custom<Init>((value) => typeof value === 'object')),
  inputs: v.custom<readonly Input[]>(Array.isArray),
  context: v.optional(jsonObject),
  version: v.optional(v.string()),
  keepInbox: v.optional(v.boolean()),
});

/** What a run was claimed from, as far as its claim tells. */
const start = v.object({
  id: v.string(),
  turnIndex: v.number(),
  index: v.number(),
  finishReason: v.optional(finishReason),
  totals: v.optional(v.object({ tokens: v.number(), toolCalls: v.number() })),
});

/** What a run had used; absent in files of older versions. */
const used = v.object({
  turn: v.object({ usage, toolCalls: v.number() }),
  before: usage,
  totals: v.exactOptional(v.object({ tokens: v.number(), toolCalls: v.number() })),
});

/** The state a run has reached: that of a snapshot, or one that is written here. */
const checkpoint = v.object({
  inputsDone: v.number(),
  midTurn: v.boolean(),
  used: v.optional(used),
  of: v.optional(v.string()),
  stateHash: v.optional(v.string()),
  state: v.optional(stateDelta),
  /** Artifacts that no snapshot has yet, by hash. */
  artifacts: v.optional(
    v.record(
      v.string(),
      v.custom<Artifact>((value) => typeof value === 'object'),
    ),
  ),
});

/** What is new about a run. */
export const runLine = v.object({
  attempt: v.optional(v.number()),
  worker: v.optional(v.string()),
  ttl: v.optional(v.number()),
  heartbeatAt: v.optional(time),
  request: v.optional(runRequest),
  stopping: v.optional(v.boolean()),
  /** The snapshot it continues from. It may not be in the journal: then its process died before it was written. */
  base: v.optional(v.string()),
  checkpoint: v.optional(checkpoint),
  /** Workers that died with it since its last progress. */
  crashes: v.optional(v.array(v.object({ attempt: v.number(), lastSeenAt: v.string() }))),
  steps: v.optional(v.array(v.object({ key: v.string(), value: v.optional(jsonValue) }))),
  /** Messages that its inbox has got. */
  inbox: v.optional(v.array(v.object({ id: v.string(), message }))),
});

/** The first line of a run's file: what never changes, and what is new so far. */
export const runHead = v.object({
  waymark: v.number(),
  id: v.string(),
  agent: v.string(),
  owner: v.optional(v.string()),
  session: v.string(),
  run: v.string(),
  createdAt: time,
  turnIndex: v.number(),
  start: v.optional(start),
  ...runLine.entries,
  attempt: v.number(),
  worker: v.string(),
  ttl: v.number(),
  heartbeatAt: time,
  request: runRequest,
});

export interface RunHead extends v.InferOutput<typeof runHead> {}
export interface RunChange extends v.InferOutput<typeof runLine> {}
export interface RunLine extends v.InferInput<typeof runLine> {}
export type CheckpointChange = NonNullable<RunChange['checkpoint']>;

/** What a run was when it was last written or read. */
export type SavedRun = Pick<
  RunRow,
  | 'attempt'
  | 'worker'
  | 'ttl'
  | 'heartbeatAt'
  | 'request'
  | 'stopping'
  | 'crashes'
  | 'base'
  | 'checkpoint'
> & { readonly steps: number; readonly inbox: number };

export function toSavedRun(run: RunRow): SavedRun {
  return { ...run, steps: run.steps.size, inbox: run.inbox.length };
}

/** What has changed about a run. */
export function toRunLine(run: RunRow, saved: SavedRun | undefined): RunLine {
  const { attempt, worker, ttl, heartbeatAt, stopping, crashes, base, steps } = run;
  const newSteps = [...steps].slice(saved?.steps ?? 0);
  const newInbox = run.inbox.slice(saved?.inbox ?? 0);
  return {
    ...(attempt === saved?.attempt ? {} : { attempt }),
    ...(worker === saved?.worker ? {} : { worker }),
    ...(ttl === saved?.ttl ? {} : { ttl }),
    ...(heartbeatAt === saved?.heartbeatAt ? {} : { heartbeatAt: iso(heartbeatAt) }),
    ...(run.request === saved?.request ? {} : { request: run.request }),
    ...(stopping === (saved?.stopping ?? false) ? {} : { stopping }),
    ...(crashes === (saved?.crashes ?? noCrashes) ? {} : { crashes: [...crashes] }),
    ...(base === undefined || base === saved?.base ? {} : { base: base.id }),
    ...(run.checkpoint === undefined || run.checkpoint === saved?.checkpoint
      ? {}
      : { checkpoint: toCheckpointLine(run.checkpoint, run, saved?.checkpoint) }),
    ...(newSteps.length === 0 ? {} : { steps: newSteps.map(([key, value]) => toStep(key, value)) }),
    ...(newInbox.length === 0 ? {} : { inbox: newInbox }),
  };
}

/** What a run was claimed from, for the first line. */
export function toStart(row: SnapshotRow): v.InferInput<typeof start> {
  const { id, turnIndex, index, finishReason: finish, totals } = row;
  return {
    id,
    turnIndex,
    index,
    ...(finish === undefined ? {} : { finishReason: finish }),
    ...(totals === undefined ? {} : { totals }),
  };
}

function toCheckpointLine(
  { state, stateHash, inputsDone, midTurn, used: spent }: Checkpoint,
  { base }: RunRow,
  before: Checkpoint | undefined,
): NonNullable<RunLine['checkpoint']> {
  const place = { inputsDone, midTurn, ...(spent === undefined ? {} : { used: spent }) };
  if (stateHash === base?.stateHash) return { ...place, of: base.id };
  const bases: NamedState[] = [
    ...(before === undefined ? [] : [{ name: 'checkpoint', state: before.state }]),
    ...(base === undefined ? [] : [{ name: base.id, state: base.state }]),
  ];
  const known = new Set(bases.flatMap((each) => each.state.artifacts.map(artifactHash)));
  const delta = toDelta(state, bases);
  const fresh = state.artifacts
    .map((artifact) => [artifactHash(artifact), artifact] as const)
    .filter(([hash]) => !known.has(hash));
  return {
    ...place,
    stateHash,
    state: delta,
    ...(fresh.length === 0 ? {} : { artifacts: Object.fromEntries(fresh) }),
  };
}

function toStep(key: string, value: Json | undefined): { key: string; value?: Json } {
  return value === undefined ? { key } : { key, value };
}
