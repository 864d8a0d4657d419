import * as v from 'valibot';
import { jsonObject } from './json-value.ts';
import { deadRun, run } from './run.ts';
import { session } from './session.ts';
import { snapshot, snapshotStatus } from './snapshot.ts';
import { init, input } from './turn.ts';

/** Body of `runTurn`. */
export const turnRequest = v.object({
  init: v.optional(init),
  input,
  /** Idempotency key, as in `input`; the header `Idempotency-Key` says the same. */
  requestId: v.optional(v.string()),
});

/** Body of `updateSession`: what is left out stays, `null` removes. */
export const sessionChange = v.object({
  title: v.optional(v.nullable(v.string())),
  metadata: v.optional(v.nullable(jsonObject)),
});

// With `ifHead`, a call is `ABORTED` unless this snapshot is the head of the session.
const ifHead = v.optional(v.string());

/** Body of `label`; `null` removes the label. */
export const snapshotChange = v.object({ label: v.nullable(v.string()), ifHead });

/** Body of `restore`, which may be left out. */
export const restoreRequest = v.object({ ifHead });

/** Body of `fork`, which may be left out: the id that the new session is to have. */
export const forkRequest = v.object({ sessionId: v.optional(v.string()), ifHead });

/** Answer of `abort`: the status after the attempt. An attached turn reads `pending` until it has stopped. */
export const abortResult = v.object({ snapshotId: v.string(), status: snapshotStatus });

/** A tool that an agent may call, for tools that show what it is asked or make a form for an answer. */
export const toolInfo = v.object({
  name: v.string(),
  description: v.optional(v.string()),
  inputSchema: jsonObject,
  outputSchema: v.optional(jsonObject),
  /** It never runs: its answer always comes from outside. */
  interrupt: v.optional(v.boolean()),
});

/** Answer of `getAgent`: an agent, and what its store can do. */
export const agentInfo = v.object({
  name: v.string(),
  description: v.optional(v.string()),
  metadata: v.object({
    stateManagement: v.picklist(['server', 'client']),
    abortable: v.boolean(),
    detachable: v.boolean(),
    watchable: v.boolean(),
    timeline: v.boolean(),
    claims: v.boolean(),
    /** Absent: a server that does not know request ids. */
    requestIds: v.optional(v.boolean()),
    store: v.optional(v.string()),
    stateSchema: v.optional(jsonObject),
  }),
  /** The model it uses unless a call says otherwise; `getAgent` of an agent over a prompt only. */
  model: v.optional(v.string()),
  /** The tools it may call; `getAgent` of an agent over a prompt only. */
  tools: v.optional(v.array(toolInfo)),
  /** The schema of its structured output, if it has one; `getAgent` of an agent over a prompt only. */
  outputSchema: v.optional(jsonObject),
});

/** Answer of `listAgents`. */
export const agentList = v.object({ items: v.array(agentInfo) });

/** Answer of `listSessions`; `next` is the cursor of the following page. */
export const sessionPage = v.object({ items: v.array(session), next: v.optional(v.string()) });

/** Answer of `listSnapshots`; metadata only. */
export const snapshotPage = v.object({ items: v.array(snapshot), next: v.optional(v.string()) });

/** Answer of `listRuns`: those that are open, oldest first. */
export const runList = v.object({ items: v.array(run) });

/** Answer of `listDeadRuns`, oldest first. */
export const deadRunList = v.object({ items: v.array(deadRun) });

/** Answer of `retryRun`: the run that was begun in the place of the dead one. */
export const retryResult = v.object({ snapshotId: v.string(), sessionId: v.string() });

export interface TurnRequest extends v.InferOutput<typeof turnRequest> {}
export interface AbortResult extends v.InferOutput<typeof abortResult> {}
export interface RetryResult extends v.InferOutput<typeof retryResult> {}
export interface ToolInfo extends v.InferOutput<typeof toolInfo> {}
export interface AgentInfo extends v.InferOutput<typeof agentInfo> {}
