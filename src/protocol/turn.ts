import * as v from 'valibot';
import { jsonObject, jsonValue } from './json-value.ts';
import { message, part, role, toolRequestPart, toolResponsePart } from './message.ts';
import { artifact, state } from './state.ts';

/** How an error looks on every wire and in every stored snapshot. */
export const errorBody = v.object({
  /** The status, such as `NOT_FOUND`. */
  status: v.string(),
  /** The failure, its cause, and how to fix it. */
  message: v.string(),
  /** Facts for programs. */
  details: v.optional(jsonValue),
});

export const finishReason = v.picklist([
  'stop',
  'length',
  'blocked',
  'interrupted',
  'other',
  'unknown',
  'aborted',
  'detached',
  'failed',
]);

export const cost = v.record(v.string(), v.number());

export const usage = v.object({
  /** All input tokens, those read from and written to a cache included. */
  inputTokens: v.optional(v.number()),
  /** All output tokens, reasoning included. */
  outputTokens: v.optional(v.number()),
  /** Input and output tokens together. */
  totalTokens: v.optional(v.number()),
  /** Output tokens of the model's reasoning. */
  reasoningTokens: v.optional(v.number()),
  /** Input tokens that were read from the provider's cache. */
  cachedInputTokens: v.optional(v.number()),
  /** Input tokens that were written to the provider's cache. */
  cacheWriteTokens: v.optional(v.number()),
  /** An estimate of the input tokens that an earlier call has sent, so that the provider's cache can have them; where it reports them. */
  expectedCachedTokens: v.optional(v.number()),
  /** The cost, where the app has a `price`. */
  cost: v.optional(cost),
});

export const init = v.object({
  /** The snapshot to continue from. */
  snapshotId: v.optional(v.string()),
  /** The session to continue, or the id of a new one. */
  sessionId: v.optional(v.string()),
  /** The state to continue from, if the client holds it. */
  state: v.optional(state),
  /** `null`, with a `sessionId`: starts at the beginning of the session, as another first turn. */
  from: v.optional(v.null('must be null; a snapshot to continue from is called "snapshotId"')),
  /** Runs the first turn only while this is the head of the session (`null`: it has none), else `ABORTED`. */
  ifHead: v.optional(v.nullable(v.string())),
});

export const resume = v.object({
  /** Results, one per tool call. */
  respond: v.optional(v.array(toolResponsePart)),
  /** Tool calls to run again. */
  restart: v.optional(v.array(toolRequestPart)),
});

export const callerTool = v.object({
  /** The name, by which the model calls it. */
  name: v.string(),
  /** The purpose of the tool, for the model. */
  description: v.optional(v.string()),
  /** JSON Schema of the arguments. */
  inputSchema: jsonObject,
});

export const input = v.object({
  /** The message of the user. */
  message: v.optional(message),
  /** Answers to the interrupts of the previous turn. */
  resume: v.optional(resume),
  /** Runs the turn in the background. */
  detach: v.optional(v.boolean()),
  /** Idempotency key: an input that is sent again under the same id joins its first run instead of starting another one. */
  requestId: v.optional(v.string()),
  /** Tools that the caller executes, for this turn only. */
  tools: v.optional(v.array(callerTool)),
});

const turnSettings = v.object({
  /** More instructions, after those of the agent. */
  instructions: v.optional(v.string()),
  /** Settings of the model, over those of the agent. */
  config: v.optional(jsonObject),
  /** Structured output: JSON that fits this schema, or any JSON. */
  output: v.optional(v.object({ schema: v.optional(jsonObject) })),
  /** Whether the model may, must or must not call tools, or which one it must call first. */
  toolChoice: v.optional(
    v.union([v.picklist(['auto', 'required', 'none']), v.object({ tool: v.string() })]),
  ),
});

/** An input as an agent takes it. Clients cannot send the settings: what parses their input drops them. */
export const agentInput = v.object({
  ...input.entries,
  /** Overrides of the agent's definition, for this turn. */
  settings: v.optional(turnSettings),
});

/** One operation of an RFC 6902 patch. */
export const patchOperation = v.object({
  /** The operation. */
  op: v.picklist(['add', 'remove', 'replace', 'move', 'copy', 'test']),
  /** JSON Pointer to the changed value. */
  path: v.string(),
  /** JSON Pointer to the source of `move` and `copy`. */
  from: v.optional(v.string()),
  /** The new value. */
  value: v.optional(jsonValue),
});

export const modelChunk = v.object({
  /** The sender: `model`, or `tool` for results of tools. */
  role: v.optional(role),
  /** The place of the message among those that the turn adds after its input, from 0; a steered message counts. */
  index: v.optional(v.number()),
  /** The new parts. */
  content: v.array(part),
});

const artifactPatch = v.object({
  /** The name of the artifact. */
  name: v.string(),
  /** The length of its text before the edit. */
  length: v.number(),
  /** The ranges that were replaced, in order. Places are those before all of them. */
  edits: v.array(v.object({ from: v.number(), to: v.number(), text: v.string() })),
});

const reset = v.object({
  /** The number of the worker's attempt, from 1. */
  attempt: v.number(),
  /** The turn that continues. Later turns of the run no longer stand. Absent in runs of earlier versions, as is `index`. */
  turnIndex: v.optional(v.number()),
  /** Messages of that turn with this index or a higher one no longer stand; the next message has this index. */
  index: v.optional(v.number()),
});

const turnStart = v.object({
  /** The session. */
  sessionId: v.string(),
  /** The reserved id of the snapshot, which is also the id of the run. */
  snapshotId: v.optional(v.string()),
  /** The number of the turn on its branch, from 0. */
  turnIndex: v.number(),
});

const turnEnd = v.object({
  /** The snapshot of the turn. */
  snapshotId: v.optional(v.string()),
  /** How the turn ended. */
  finishReason: v.optional(finishReason),
  /** Tokens and cost of the turn. */
  usage: v.optional(usage),
  /** The structured output of the turn. */
  output: v.optional(jsonValue),
});

export const chunk = v.object({
  /** A turn has begun. */
  turnStart: v.optional(turnStart),
  /** A piece of the model's answer, a tool call, or a result of a tool. */
  modelChunk: v.optional(modelChunk),
  /** A status that the agent sent with `respond.status`. */
  status: v.optional(jsonValue),
  /** An artifact that was added or replaced. */
  artifact: v.optional(artifact),
  /** An edit of a long artifact's text. In process it comes with the edited `artifact`, over HTTP in place of it, if asked for. */
  artifactPatch: v.optional(artifactPatch),
  /** A change of the custom state, as a JSON Patch. */
  customPatch: v.optional(v.array(patchOperation)),
  /** The id of a snapshot that was saved. */
  snapshotCreated: v.optional(v.string()),
  /** A message that was added to the running turn; `metadata.steered.id` is the id that its sender gave it. */
  steered: v.optional(message),
  /** Another worker has taken over the run and continues from its last checkpoint. */
  reset: v.optional(reset),
  /** The turn has ended and is saved. */
  turnEnd: v.optional(turnEnd),
  /** The sub-agent this chunk comes from. */
  agent: v.optional(v.string()),
  /** The tool call that the sub-agent works on; tells two calls of one agent apart. */
  agentRef: v.optional(v.string()),
});

export const output = v.object({
  /** The session. */
  sessionId: v.string(),
  /** The last snapshot, from which the session continues. */
  snapshotId: v.optional(v.string()),
  /** All snapshots of this invocation, in order. */
  snapshotIds: v.optional(v.array(v.string())),
  /** The state, if the client holds it. */
  state: v.optional(state),
  /** The last message of the model. */
  message: v.optional(message),
  /** The structured output. */
  output: v.optional(jsonValue),
  /** The artifacts of the session. */
  artifacts: v.optional(v.array(artifact)),
  /** How the last turn ended. */
  finishReason: v.optional(finishReason),
  /** Tokens and cost of all turns of this invocation. */
  usage: v.optional(usage),
  /** Why the turn failed. */
  error: v.optional(errorBody),
});

/** How a turn ended: the model's own reason, or `interrupted`, `aborted`, `detached`, `failed`. */
export type FinishReason = v.InferOutput<typeof finishReason>;
/** An amount of money: integer micro-units (a millionth of a unit) by currency, such as `{ USD: 1500 }` for $0.0015. */
export type Cost = Readonly<v.InferOutput<typeof cost>>;
/** Tokens of a model call, a turn or a session, and what they cost. */
export interface Usage extends v.InferOutput<typeof usage> {}
/** Where an invocation starts. */
export interface Init extends v.InferOutput<typeof init> {}
/** Answers to interrupted tool calls: `respond` gives a result, `restart` runs the tool again. */
export interface Resume extends v.InferOutput<typeof resume> {}
/** A tool that the caller executes, for one turn: a call of the model interrupts the turn and is answered by `resume`. */
export interface CallerToolInfo extends v.InferOutput<typeof callerTool> {}
/** Overrides of the agent's definition, for one turn. */
export interface TurnSettings extends v.InferOutput<typeof turnSettings> {}
/** The input of a turn. */
export interface Input extends v.InferOutput<typeof agentInput> {}
/** A piece of a model's answer as it streams. */
export interface ModelChunk extends v.InferOutput<typeof modelChunk> {}
/** An edit of an artifact's text. */
export interface ArtifactPatch extends v.InferOutput<typeof artifactPatch> {}
/** A takeover by another worker: which of the streamed messages no longer stand. */
export interface Reset extends v.InferOutput<typeof reset> {}
/** One item of an agent's stream; one or more of its fields are set. */
export interface Chunk extends v.InferOutput<typeof chunk> {}
/** How an invocation ended. */
export interface Output extends v.InferOutput<typeof output> {}
