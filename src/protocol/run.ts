import * as v from 'valibot';
import { jsonValue } from './json-value.ts';

/**
 * What happens to a run when its process dies. `attached`: the caller in that process waits for it; it does not continue.
 * `accepted`: a server accepted it, and any process may continue it. `detached`: as accepted, and no caller waits.
 */
export const runMode = v.picklist(['attached', 'accepted', 'detached']);

/** An open run, for showing it. Times are ISO 8601. */
export const run = v.object({
  /** The reserved id, under which it is watched and aborted. */
  snapshotId: v.string(),
  sessionId: v.string(),
  agent: v.string(),
  /** The version of the agent that accepted it, where agents have one. */
  version: v.optional(v.string()),
  mode: runMode,
  /** 1, and one more each time that another process took it over. */
  attempt: v.number(),
  /** How many inputs it works off. */
  inputs: v.number(),
  /** How many of them are behind it. */
  inputsDone: v.number(),
  createdAt: v.string(),
  heartbeatAt: v.string(),
  /** No heartbeat for too long: its process is gone, and another is going to take it over. */
  expired: v.boolean(),
  /** An abort was requested. */
  stopping: v.boolean(),
  /** The last status it sent; absent where another process works on it. */
  status: v.optional(jsonValue),
});

/** A run that was given up because it cost too many workers. It can be begun again by hand. Times are ISO 8601. */
export const deadRun = v.object({
  /** The id of the run and of its `failed` snapshot. */
  snapshotId: v.string(),
  sessionId: v.string(),
  agent: v.string(),
  /** Each worker that was lost with it, and how. */
  attempts: v.array(v.object({ attempt: v.number(), error: v.string() })),
  /** When it was given up. */
  since: v.string(),
});

export type RunMode = v.InferOutput<typeof runMode>;
export interface RunInfo extends v.InferOutput<typeof run> {}
export interface DeadRun extends v.InferOutput<typeof deadRun> {}
