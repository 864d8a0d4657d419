import type { Artifact } from '../../../protocol/state.ts';
import { emptyState, hashState, type SessionState } from '../../../session/session-state.ts';
import type { RunRequest } from '../../contract/store.ts';
import { noCrashes, noMessages, toRunRequest } from '../../memory/claim.ts';
import type { Checkpoint, RunRow, SessionRow, SnapshotRow } from '../../memory/tables.ts';
import type { SessionTree } from '../sessions/session-tree.ts';
import { fromDelta, type StateDelta } from '../sessions/state-delta.ts';
import type { CheckpointChange, RunChange, RunHead } from './run-line.ts';

/** Where a session lives. */
export interface Home {
  readonly tree: SessionTree;
  readonly session: SessionRow;
}

/** Artifacts that only a run has yet, by hash. */
export type RunArtifacts = Map<string, Artifact>;

/** The run of a file's first line. */
export function toRun(head: RunHead, { tree, session }: Home): RunRow {
  const start = head.start && (tree.rows.get(head.start.id)?.row ?? stub(head.start, session));
  return {
    id: head.run,
    session,
    attempt: head.attempt,
    request: requestOf(head.request),
    worker: head.worker,
    ttl: head.ttl,
    createdAt: head.createdAt,
    heartbeatAt: head.heartbeatAt,
    start,
    base: start,
    turnIndex: head.turnIndex,
    stopping: false,
    crashes: noCrashes,
    steps: new Map(),
    inbox: noMessages,
  };
}

/** Makes a run what a line says. A base that the journal lacks was never written: its process died before. */
export function changeRun(
  run: RunRow,
  change: RunChange,
  tree: SessionTree,
  artifacts: RunArtifacts,
): void {
  const {
    attempt,
    worker,
    ttl,
    heartbeatAt,
    request,
    stopping,
    crashes,
    steps = [],
    inbox = [],
  } = change;
  if (attempt !== undefined) run.attempt = attempt;
  if (worker !== undefined) run.worker = worker;
  if (ttl !== undefined) run.ttl = ttl;
  if (heartbeatAt !== undefined) run.heartbeatAt = heartbeatAt;
  if (request !== undefined) run.request = requestOf(request);
  if (stopping !== undefined) run.stopping = stopping;
  if (crashes !== undefined) run.crashes = crashes.length === 0 ? noCrashes : crashes;
  for (const { key, value } of steps) run.steps.set(key, value);
  if (inbox.length > 0) run.inbox = [...run.inbox, ...inbox];
  const base = change.base === undefined ? run.base : tree.rows.get(change.base)?.row;
  if (change.base !== undefined && base === undefined) return;
  run.base = base;
  if (change.checkpoint !== undefined) {
    run.checkpoint = toCheckpoint(change.checkpoint, run, tree, artifacts);
  }
}

// A state that was not listed may be gone by now; what the claim tells of it is kept with the run.
function stub(
  { id, turnIndex, index, finishReason, totals }: NonNullable<RunHead['start']>,
  session: SessionRow,
): SnapshotRow {
  return {
    id,
    session,
    parent: undefined,
    index,
    turnIndex,
    event: 'turnEnd',
    status: 'succeeded',
    createdAt: session.createdAt,
    updatedAt: session.createdAt,
    ...(finishReason === undefined ? {} : { finishReason }),
    ...(totals === undefined ? {} : { totals }),
    state: emptyState,
    stateHash: hashState(emptyState),
  };
}

function toCheckpoint(
  change: CheckpointChange,
  { base, checkpoint: before }: RunRow,
  tree: SessionTree,
  artifacts: RunArtifacts,
): Checkpoint {
  const { inputsDone, midTurn, used, state: delta, stateHash } = change;
  for (const [hash, artifact] of Object.entries(change.artifacts ?? {})) {
    artifacts.set(hash, artifact);
  }
  const readArtifacts = (hashes: readonly string[]): readonly Artifact[] =>
    hashes.map((hash) => artifacts.get(hash) ?? tree.artifacts.read(hash));
  const read = (): SessionState =>
    delta === undefined
      ? stateOf(base)
      : fromDelta(delta, stateOf(isOnCheckpoint(delta) ? before : base), readArtifacts);
  let state: SessionState | undefined;
  return {
    inputsDone,
    midTurn,
    used,
    stateHash: stateHash ?? base?.stateHash ?? '',
    get state() {
      state ??= read();
      return state;
    },
  };
}

function isOnCheckpoint({ base }: StateDelta): boolean {
  return base === 'checkpoint';
}

function stateOf(holder: { readonly state: SessionState } | undefined): SessionState {
  return holder?.state ?? emptyState;
}

/** What a run was asked, as it was written. */
export function requestOf({
  mode,
  init,
  inputs,
  context,
  version,
  keepInbox,
}: RunHead['request']): RunRequest {
  return toRunRequest({
    mode,
    inputs,
    ...(init === undefined ? {} : { init }),
    ...(context === undefined ? {} : { context }),
    ...(version === undefined ? {} : { version }),
    ...(keepInbox === undefined ? {} : { keepInbox }),
  });
}
