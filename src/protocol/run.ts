import * as v from 'valibot';
import { jsonValue } from './json-value.ts';

export const runMode = v.picklist(['attached', 'accepted', 'detached']);

export const run = v.object({
  /** The reserved id, under which it is watched and aborted. */
  snapshotId: v.string(),
  /** The session. */
  sessionId: v.string(),
  /** The agent. */
  agent: v.string(),
  /** The version of the agent that accepted it, where agents have one. */
  version: v.optional(v.string()),
  /** Whether a caller waits for it. */
  mode: runMode,
  /** 1, and one more each time that another process took it over. */
  attempt: v.number(),
  /** How many inputs it has. */
  inputs: v.number(),
  /** How many of them it has completed. */
  inputsDone: v.number(),
  /** When it was accepted. */
  createdAt: v.string(),
  /** The last heartbeat of its worker. */
  heartbeatAt: v.string(),
  /** Without a recent heartbeat: its process is gone, and another one will take it over. */
  expired: v.boolean(),
  /** An abort was requested. */
  stopping: v.boolean(),
  /** The last status it sent; absent where another process works on it. */
  status: v.optional(jsonValue),
});

export const deadRun = v.object({
  /** The id of the run and of its `failed` snapshot. */
  snapshotId: v.string(),
  /** The session. */
  sessionId: v.string(),
  /** The agent. */
  agent: v.string(),
  /** Each worker that was lost with it, and how. */
  attempts: v.array(v.object({ attempt: v.number(), error: v.string() })),
  /** When it moved to the dead-letter queue. */
  since: v.string(),
});

/**
 * The fate of a run whose process dies. `attached`: the caller in that process waits for it; it does not continue.
 * `accepted`: a server accepted it, and any process may continue it. `detached`: as accepted, and no caller waits.
 */
export type RunMode = v.InferOutput<typeof runMode>;
/** An open run. Times are ISO 8601. */
export interface RunInfo extends v.InferOutput<typeof run> {}
/** A run in the dead-letter queue: it crashed too many workers. You can retry it. Times are ISO 8601. */
export interface DeadRun extends v.InferOutput<typeof deadRun> {}
