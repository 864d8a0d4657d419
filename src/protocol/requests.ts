import * as v from 'valibot';
import { jsonObject, jsonValue } from './json-value.ts';
import { message, toolRequestPart } from './message.ts';
import { deadRun, run } from './run.ts';
import { session } from './session.ts';
import { editNote, snapshot, snapshotStatus } from './snapshot.ts';
import { artifact } from './state.ts';
import { callerTool, init, input, patchOperation, usage } from './turn.ts';

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
export const restoreRequest = v.object({
  ifHead,
  /** Saves the partial state of an aborted background run as a new snapshot, and continues from it. */
  partial: v.optional(v.boolean()),
  /** `false`: the files of the workspace stay as they are. */
  workspace: v.optional(v.boolean()),
});

/** Body of `undo`: the id of a plan, or `true` for whatever can be undone now. */
export const undoRequest = v.object({
  undo: v.union([v.literal(true), v.string()]),
  /** Also undoes what another branch needs, and restores although something cannot be undone. */
  force: v.optional(v.boolean()),
  /** `false`: the files of the workspace stay as they are. */
  workspace: v.optional(v.boolean()),
  ifHead,
});

/** Body of `fork`, which may be left out: the id that the new session is to have. */
export const forkRequest = v.object({ sessionId: v.optional(v.string()), ifHead });

/** The changes of an edit; omitted fields are unchanged. */
export const stateEdit = v.object({
  /** The new custom state. */
  custom: v.optional(jsonValue),
  /** Changes the custom state by an RFC 6902 patch, instead of `custom`. */
  customPatch: v.optional(v.array(patchOperation)),
  /** Added; replaces artifacts with the same names. */
  artifacts: v.optional(v.array(artifact)),
  /** The names of artifacts to remove. */
  removeArtifacts: v.optional(v.array(v.string())),
});

/** Body of `edit`. */
export const editRequest = v.object({
  change: stateEdit,
  /** Why, for the record; the server adds who. */
  reason: editNote.entries.reason,
  ifHead,
});

/** Answer of `abort`: the status after the attempt. An attached turn reads `pending` until it has stopped. */
export const abortResult = v.object({ snapshotId: v.string(), status: snapshotStatus });

/** Body of `steer`: the message to add to the running turn. `requestId` as in `runTurn`. */
export const steerRequest = v.object({ input, requestId: v.optional(v.string()) });

/** Answer of `steer`: the running turn has the message in its inbox, a turn has taken it, or it waits for the next turn. */
export const steerResult = v.object({
  /** The id of the message. */
  id: v.string(),
  /** The state of the message. */
  status: v.picklist(['queued', 'taken', 'next']),
});

export const toolInfo = v.object({
  ...callerTool.entries,
  /** JSON Schema of the result. */
  outputSchema: v.optional(jsonObject),
  /** It never runs: a client always answers it. */
  interrupt: v.optional(v.boolean()),
});

export const skillInfo = v.object({
  /** The name under which a model loads it. */
  name: v.string(),
  /** What the skill does, and when to use it. */
  description: v.string(),
  /** The hash of its files. */
  version: v.string(),
  /** The system that serves it, such as an MCP server; absent for skills of the app. */
  origin: v.optional(v.string()),
});

export const agentInfo = v.object({
  /** The name of the agent. */
  name: v.string(),
  /** The description of the agent. */
  description: v.optional(v.string()),
  /** How its sessions are kept, and which calls its store supports. */
  metadata: v.object({
    stateManagement: v.picklist(['server', 'client']),
    abortable: v.boolean(),
    detachable: v.boolean(),
    watchable: v.boolean(),
    timeline: v.boolean(),
    claims: v.boolean(),
    /** Absent: a server that does not know request ids. */
    requestIds: v.optional(v.boolean()),
    /** Whether messages can be added to a running turn. */
    steerable: v.optional(v.boolean()),
    store: v.optional(v.string()),
    /** The name of its memory. */
    memory: v.optional(v.string()),
    stateSchema: v.optional(jsonObject),
  }),
  /** The model it uses unless a call says otherwise; `getAgent` of an agent over a prompt only. */
  model: v.optional(v.string()),
  /** The tools it may call; `getAgent` of an agent over a prompt only. */
  tools: v.optional(v.array(toolInfo)),
  /** The skills that it can load; `getAgent` of an agent with skills only. */
  skills: v.optional(v.array(skillInfo)),
  /** The schema of its structured output, if it has one; `getAgent` of an agent over a prompt only. */
  outputSchema: v.optional(jsonObject),
});

/** Answer of `listAgents`. */
export const agentList = v.object({ items: v.array(agentInfo) });

/** Answer of `listSessions`; `next` is the cursor of the following page. */
export const sessionPage = v.object({ items: v.array(session), next: v.optional(v.string()) });

export const waitingSession = v.object({
  /** The session. */
  sessionId: v.string(),
  /** The agent. */
  agent: v.string(),
  /** The title of the session. */
  title: v.optional(v.string()),
  /** The snapshot that the answer continues from. */
  snapshotId: v.optional(v.string()),
  /** When the turn was interrupted, as ISO 8601. */
  since: v.string(),
  /** The tool calls that wait. */
  requests: v.array(toolRequestPart),
});

/** Answer of `listInterrupts`, newest first. */
export const waitingPage = v.object({
  items: v.array(waitingSession),
  next: v.optional(v.string()),
});

/** Answer of `listSnapshots`; metadata only. */
export const snapshotPage = v.object({ items: v.array(snapshot), next: v.optional(v.string()) });

/** Answer of `listRuns`: those that are open, oldest first. */
export const runList = v.object({ items: v.array(run), next: v.optional(v.string()) });

/** Answer of `listDeadRuns`, oldest first. */
export const deadRunList = v.object({ items: v.array(deadRun), next: v.optional(v.string()) });

/** One sum of what was spent: by agent, model or day. */
const usageSum = v.object({ key: v.string(), calls: v.number(), usage });

/** Answer of `getUsage`: what the caller has spent in a session, or in all sessions of the agent. */
export const usageReport = v.object({
  /** The number of model calls. */
  calls: v.number(),
  /** Tokens and cost of all of them. */
  usage,
  /** The same by agent, model or day, where that was asked for. */
  items: v.optional(v.array(usageSum)),
});

export const retryResult = v.object({
  /** The id of the new run. */
  snapshotId: v.string(),
  /** The session. */
  sessionId: v.string(),
});

export interface TurnRequest extends v.InferOutput<typeof turnRequest> {}
export interface StateEdit extends v.InferOutput<typeof stateEdit> {}
export interface AbortResult extends v.InferOutput<typeof abortResult> {}
/** A session that waits for the answer of a person. */
export interface WaitingSession extends v.InferOutput<typeof waitingSession> {}
/**
 * Whether a running turn accepted a message. `queued`: the turn takes it before it ends. `taken`: the turn has ended and has
 * it, which only a call that is repeated under its request id can find.
 */
export interface SteerResult extends v.InferOutput<typeof steerResult> {}
/** The run that replaces a dead one. */
export interface RetryResult extends v.InferOutput<typeof retryResult> {}
/** The usage of a session, or of all sessions of an agent. */
export interface UsageReport extends v.InferOutput<typeof usageReport> {}
/** A tool that an agent can call. */
export interface ToolInfo extends v.InferOutput<typeof toolInfo> {}
/** A skill that an agent can load. */
export interface SkillInfo extends v.InferOutput<typeof skillInfo> {}
/** An agent, and what its store can do. */
export interface AgentInfo extends v.InferOutput<typeof agentInfo> {}

const artifactDiff = v.object({
  /** The name; unnamed artifacts are `#0`, `#1`, … by their place. */
  name: v.string(),
  /** Whether it is only in the second snapshot, only in the first, or in both. */
  change: v.picklist(['added', 'removed', 'changed']),
  /** From the first version to the second, for `changed`. */
  patch: v.optional(v.array(patchOperation)),
});

const skillDiff = v.object({
  /** The name of the skill. */
  name: v.string(),
  /** Whether it was loaded only in the second snapshot, only in the first, or in both. */
  change: v.picklist(['added', 'removed', 'changed']),
  /** Its version in the first snapshot. */
  from: v.optional(v.string()),
  /** Its version in the second snapshot. */
  to: v.optional(v.string()),
});

const fileDiff = v.object({
  /** The path, with `/` between folders. */
  path: v.string(),
  /** Whether it is only in the second snapshot, only in the first, or in both. */
  change: v.picklist(['added', 'removed', 'changed']),
  /** The changed lines of a text of moderate size, and those next to them; `…` marks a gap. */
  lines: v.optional(
    v.array(
      v.object({
        kind: v.picklist(['same', 'removed', 'added']),
        text: v.string(),
        /** The number of the line in the first snapshot, from 1. */
        before: v.optional(v.number()),
        /** The number of the line in the second snapshot, from 1. */
        after: v.optional(v.number()),
      }),
    ),
  ),
});

const fileInfo = v.object({
  /** The path, with `/` between folders. */
  path: v.string(),
  /** A link is a symbolic one; `target` is where it leads. */
  type: v.picklist(['file', 'link']),
  /** Number of bytes. */
  size: v.number(),
  /** SHA-256 of the content, in lower-case hex. */
  hash: v.optional(v.string()),
  /** Whether it can be executed. */
  executable: v.optional(v.boolean()),
  /** The target of a link. */
  target: v.optional(v.string()),
});

/** Answer of `listFiles`, by path. */
export const filePage = v.object({ items: v.array(fileInfo), next: v.optional(v.string()) });

export const diff = v.object({
  /** The first snapshot. */
  from: v.string(),
  /** The second snapshot. */
  to: v.string(),
  /** The messages that only the second snapshot has, and those that only the first has. */
  messages: v.object({ added: v.array(message), removed: v.array(message) }),
  /** The change of the custom state, as a JSON Patch. */
  custom: v.array(patchOperation),
  /** The artifacts that differ. */
  artifacts: v.array(artifactDiff),
  /** The files of the workspace that differ, by path; absent for an agent without one. */
  files: v.optional(v.array(fileDiff)),
  /** The skills whose version differs, by the last time that each was loaded; absent if there is none. */
  skills: v.optional(v.array(skillDiff)),
});

/** How one artifact differs between two snapshots. */
export interface ArtifactDiff extends v.InferOutput<typeof artifactDiff> {}
/** The changes from one snapshot to another. */
export interface Diff extends v.InferOutput<typeof diff> {}
/** How one file of a workspace differs between two snapshots. */
export interface FileDiff extends v.InferOutput<typeof fileDiff> {}
/** How the version of a skill differs between two snapshots. */
export interface SkillDiff extends v.InferOutput<typeof skillDiff> {}
/** A file of a workspace, as a snapshot has it. */
export interface FileInfo extends v.InferOutput<typeof fileInfo> {}
