import * as v from 'valibot';
import { errorBody } from './error-body.ts';
import { state } from './state.ts';
import { finishReason, usage } from './turn.ts';

/** The moments at which a snapshot may be made. */
export const snapshotEvent = v.picklist(['turnEnd', 'toolIterationEnd', 'invocationEnd', 'detach']);

/** `expired` is how a pending snapshot with a stale heartbeat reads; it is never written. */
export const snapshotStatus = v.picklist(['pending', 'succeeded', 'failed', 'aborted', 'expired']);

/** A state at one moment, with its place in the session's tree. Times are ISO 8601. */
export const snapshot = v.object({
  snapshotId: v.string(),
  sessionId: v.string(),
  parentId: v.optional(v.string()),
  /** Counts the session's snapshots; never reused; orders lists. -1 while it is not among them. */
  index: v.number(),
  /** 0-based along the path from the root. */
  turnIndex: v.number(),
  event: snapshotEvent,
  status: snapshotStatus,
  finishReason: v.optional(finishReason),
  error: v.optional(errorBody),
  usage: v.optional(usage),
  createdAt: v.string(),
  updatedAt: v.string(),
  heartbeatAt: v.optional(v.string()),
  /** Content address of the state. */
  stateHash: v.string(),
  label: v.optional(v.string()),
  /** Not on the path from the session's head to the root. Computed on reading, never stored. */
  orphaned: v.boolean(),
  state: v.optional(state),
});

export type SnapshotEvent = v.InferOutput<typeof snapshotEvent>;
export type SnapshotStatus = v.InferOutput<typeof snapshotStatus>;
export interface Snapshot extends v.InferOutput<typeof snapshot> {}
