import type { ErrorBody } from '../../../core/error.ts';
import { defined } from '../../../core/json/json.ts';
import type { EditNote, Snapshot, SnapshotStatus } from '../../../protocol/snapshot.ts';
import type { Totals } from '../../../protocol/usage.ts';
import { emptyState, hashState } from '../../../session/session-state.ts';
import { isExpired } from '../../rules/holder.ts';
import type { Cipher } from '../content/cipher.ts';
import { openJson, sealed } from '../content/open-json.ts';
import { type Home, type HomeRow, homeOf, snapshotPlace } from '../content/places.ts';
import type { SqlValue } from '../database/query.ts';
import type { StoredState } from '../history/plan-state.ts';
import type { StateContext } from '../history/state-rows.ts';
import { fromHex, iso, uuidText } from '../values/bytes.ts';
import {
  code,
  fromEvent,
  fromFinish,
  fromStatus,
  fromUsage,
  type StoredStatus,
  toEvent,
  toFinish,
  toStatus,
  toTotals,
  toUsage,
} from '../values/codes.ts';

/** The columns that make a snapshot's metadata: of the row `s`, its parent `p`, its session `z` and its open run `r`. */
export const snapshotColumns = `
  s.id, z.owner, z.agent, z.id AS session_id, p.id AS parent_id, s.idx, s.turn, s.event, s.status, s.finish,
  s.created_at, s.updated_at, s.ttl, s.usage, s.error, s.label, s.state_hash,
  r.heartbeat AS run_heartbeat, r.ttl AS run_ttl`;

export interface SnapshotRow extends HomeRow {
  readonly id: Uint8Array;
  readonly parent_id: Uint8Array | null;
  readonly idx: number | null;
  readonly turn: number;
  readonly event: number;
  readonly status: number;
  readonly finish: number | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly ttl: number | null;
  readonly usage: string | null;
  readonly error: SqlValue;
  readonly label: SqlValue;
  readonly state_hash: Uint8Array;
  readonly run_heartbeat: number | null;
  readonly run_ttl: number | null;
}

/** Values that are worked out on reading. */
export interface Reading {
  readonly now: number;
  readonly orphaned: boolean;
  /** The hash of the state that its open run has reached. @default the row's own */
  readonly stateHash?: string;
}

/** A snapshot without its state. */
export function toSnapshot(
  row: SnapshotRow,
  { now, orphaned, stateHash }: Reading,
  cipher: Cipher,
): Snapshot {
  const home = homeOf(row);
  const contentOf = (value: SqlValue, column: 'error' | 'label'): unknown =>
    openJson(value, snapshotPlace(column, home, row.id), cipher);
  const heartbeat = row.run_heartbeat ?? (row.ttl === null ? undefined : row.updated_at);
  const hasHeartbeat = row.status === code.pending && heartbeat !== undefined;
  return defined({
    snapshotId: uuidText(row.id),
    sessionId: row.session_id,
    parentId: row.parent_id === null ? undefined : uuidText(row.parent_id),
    index: row.idx ?? -1,
    turnIndex: row.turn,
    event: fromEvent(row.event),
    status: statusOf(row, now),
    finishReason: fromFinish(row.finish),
    ...noteOf(row, (value) => contentOf(value, 'error')),
    usage: fromUsage(row.usage),
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
    heartbeatAt: hasHeartbeat ? iso(heartbeat) : undefined,
    stateHash: stateHash ?? openHash(row, row, cipher),
    label: row.label === null ? undefined : (contentOf(row.label, 'label') as string),
    orphaned,
  });
}

/** The content of the column `error`: for an edit, who made it. */
function noteOf(
  { event, error }: SnapshotRow,
  open: (value: SqlValue) => unknown,
): Pick<Snapshot, 'error' | 'edit'> {
  if (error === null) return {};
  return event === code.edit
    ? { edit: open(error) as EditNote }
    : { error: open(error) as ErrorBody };
}

/** The hash of a state in which nothing has happened. */
const hashOfNothing = hashState(emptyState);

/**
 * Stands in the row of a run that is detached from an empty session. While a run is open its row holds the base's hash, or
 * this: nothing reads it, because the row shows what the run has reached. The run's end writes its own.
 */
export const noHash: Uint8Array = fromHex(hashOfNothing);

/** A stored hash with the snapshot it was written for: `null` for a checkpoint. */
export interface HashRow {
  readonly id: Uint8Array | null;
  readonly state_hash: Uint8Array | null;
}

/** The hash of a state that is stored in a session; where there is no row, nothing has happened. */
export function openHash(session: HomeRow, { id, state_hash }: HashRow, cipher: Cipher): string {
  if (state_hash === null) return hashOfNothing;
  return cipher.openHash(state_hash, snapshotPlace('state_hash', homeOf(session), id));
}

/** The status as it reads now: a pending one with a stale heartbeat reads `expired`. */
export function statusOf(
  row: Pick<SnapshotRow, 'status' | 'updated_at' | 'ttl' | 'run_heartbeat' | 'run_ttl'>,
  now: number,
): SnapshotStatus {
  if (row.status !== code.pending) return fromStatus(row.status);
  const ttl = row.run_heartbeat === null ? row.ttl : row.run_ttl;
  const lease = { heartbeatAt: row.run_heartbeat ?? row.updated_at, ttl: ttl ?? 0 };
  return isExpired(lease, now) ? 'expired' : 'pending';
}

/** The columns that say what happened. */
export const outcomeColumns = 'turn, event, status, finish, state_hash, usage, totals, error';

/** What happened, as it is written. */
interface Outcome
  extends Pick<Snapshot, 'snapshotId' | 'turnIndex' | 'event' | 'finishReason' | 'stateHash'>,
    Pick<Snapshot, 'usage' | 'error' | 'edit'> {
  readonly status: StoredStatus;
  readonly toolCalls?: number;
  readonly totals?: Totals | undefined;
}

/** The values of {@link outcomeColumns}. */
export function outcomeValues(
  write: Outcome,
  home: Home,
  { cipher }: StateContext,
): readonly SqlValue[] {
  const { snapshotId } = write;
  return [
    write.turnIndex,
    toEvent(write.event),
    toStatus(write.status),
    toFinish(write.finishReason),
    cipher.sealHash(write.stateHash, snapshotPlace('state_hash', home, snapshotId)),
    toUsage(write.usage, write.toolCalls),
    toTotals(write.totals),
    sealNote(write, snapshotPlace('error', home, snapshotId), cipher),
  ];
}

/**
 * The value of the column `error`: the error of a failed or aborted turn or, as an edit always succeeds, who made the edit.
 */
export function sealNote(
  { error, edit }: Pick<Snapshot, 'error' | 'edit'>,
  place: string,
  cipher: Cipher,
): SqlValue {
  return sealed(error ?? edit ?? null, place, cipher);
}

/** The columns that say where a state lies. */
export const stateColumns = 'branch, branch_length, view, length, custom, artifacts';

/** The values of {@link stateColumns}. */
export function placeValues(state: StoredState): readonly SqlValue[] {
  const { view, viewRowId, length, custom, artifacts } = state;
  return [view.branch, view.to, viewRowId, length, custom?.rowId ?? null, artifacts?.rowId ?? null];
}
