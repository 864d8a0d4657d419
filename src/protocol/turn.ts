import * as v from 'valibot';
import { errorBody } from './error-body.ts';
import { jsonValue } from './json-value.ts';
import { message, part, role, toolRequestPart, toolResponsePart } from './message.ts';
import { artifact, state } from './state.ts';

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

/** Tokens a model call, a turn or a session took. */
export const usage = v.object({
  inputTokens: v.optional(v.number()),
  outputTokens: v.optional(v.number()),
  totalTokens: v.optional(v.number()),
  reasoningTokens: v.optional(v.number()),
  cachedInputTokens: v.optional(v.number()),
});

/** Where an invocation starts. */
export const init = v.object({
  snapshotId: v.optional(v.string()),
  sessionId: v.optional(v.string()),
  state: v.optional(state),
  /** Runs the first turn only while this is the head of the session (`null`: it has none), else `ABORTED`. */
  ifHead: v.optional(v.nullable(v.string())),
});

/** Answers to interrupted tool requests: `respond` gives a result, `restart` runs the tool again. */
export const resume = v.object({
  respond: v.optional(v.array(toolResponsePart)),
  restart: v.optional(v.array(toolRequestPart)),
});

/** What starts a turn. */
export const input = v.object({
  message: v.optional(message),
  resume: v.optional(resume),
  detach: v.optional(v.boolean()),
  /** Idempotency key: an input that is sent again under the same id joins its first run instead of starting another one. */
  requestId: v.optional(v.string()),
});

/** One operation of an RFC 6902 patch. */
export const patchOperation = v.object({
  op: v.picklist(['add', 'remove', 'replace', 'move', 'copy', 'test']),
  path: v.string(),
  from: v.optional(v.string()),
  value: v.optional(jsonValue),
});

/** A piece of a model's answer as it streams. */
export const modelChunk = v.object({
  role: v.optional(role),
  index: v.optional(v.number()),
  content: v.array(part),
});

const turnStart = v.object({
  sessionId: v.string(),
  snapshotId: v.optional(v.string()),
  turnIndex: v.number(),
});

const turnEnd = v.object({
  snapshotId: v.optional(v.string()),
  finishReason: v.optional(finishReason),
  usage: v.optional(usage),
  /** The structured output of the turn, for those who are not there when the whole output is given. */
  output: v.optional(jsonValue),
});

/** One item of an agent's stream; one or more of its fields are set. */
export const chunk = v.object({
  turnStart: v.optional(turnStart),
  modelChunk: v.optional(modelChunk),
  status: v.optional(jsonValue),
  artifact: v.optional(artifact),
  customPatch: v.optional(v.array(patchOperation)),
  snapshotCreated: v.optional(v.string()),
  turnEnd: v.optional(turnEnd),
  /** The sub-agent this chunk comes from. */
  agent: v.optional(v.string()),
  /** The tool call that the sub-agent works on; tells two calls of one agent apart. */
  agentRef: v.optional(v.string()),
});

/** How an invocation ended. `state` is there for client-managed agents only. */
export const output = v.object({
  sessionId: v.string(),
  snapshotId: v.optional(v.string()),
  snapshotIds: v.optional(v.array(v.string())),
  state: v.optional(state),
  message: v.optional(message),
  output: v.optional(jsonValue),
  artifacts: v.optional(v.array(artifact)),
  finishReason: v.optional(finishReason),
  usage: v.optional(usage),
  error: v.optional(errorBody),
});

export type FinishReason = v.InferOutput<typeof finishReason>;
export interface Usage extends v.InferOutput<typeof usage> {}
export interface Init extends v.InferOutput<typeof init> {}
export interface Resume extends v.InferOutput<typeof resume> {}
export interface Input extends v.InferOutput<typeof input> {}
export interface ModelChunk extends v.InferOutput<typeof modelChunk> {}
export interface Chunk extends v.InferOutput<typeof chunk> {}
export interface Output extends v.InferOutput<typeof output> {}
