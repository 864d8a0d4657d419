export type {
  Agent,
  AgentConnection,
  AgentMetadata,
  AgentStream,
  AgentTypes,
  CallOptions,
  Chat,
  ChunkOf,
  EventId,
  InvokeOptions,
  OutputOf,
  ResumeInput,
  SessionOf,
  SnapshotOf,
  StateOf,
  WatchEvent,
  WireTypes,
} from './agent/agent.ts';
export { backgroundAgentTools } from './agent/background-agent.ts';
export type { AgentOptions, CustomAgentOptions } from './agent/define.ts';
export type {
  AgentHandler,
  AgentResult,
  AgentSession,
  HandlerIo,
  Responder,
  TurnFunction,
  TurnInfo,
  TurnResult,
} from './agent/handler.ts';
export type { AgentLimits, Concurrency, RunEnd, Transform } from './agent/spec.ts';
export { type AgentToolOptions, agentTool } from './agent/sub-agent.ts';
export { type App, type AppOptions, type ToolExtras, waymark } from './app.ts';
export type { Action, ActionDescriptor } from './core/action.ts';
export { type Clock, systemClock } from './core/clock.ts';
export { type ErrorBody, isWaymarkError, type Status, WaymarkError } from './core/error.ts';
export type { NewId } from './core/id.ts';
export type { Json, JsonObject } from './core/json.ts';
export type { JsonPatch } from './core/patch.ts';
export type { InferSchema, JsonSchema, Schema } from './core/schema.ts';
export type { GenerateOptions } from './generate/generate-options.ts';
export type { GenerateResponse } from './generate/generate-response.ts';
export type { GenerateStream } from './generate/generate-stream.ts';
export {
  type HistorySelection,
  lastMessages,
  tokenBudget,
} from './generate/history.ts';
export {
  modelMessage,
  systemMessage,
  textOf,
  toolMessage,
  toolRequestsOf,
  userMessage,
} from './generate/message.ts';
export {
  type Model,
  type ModelRef,
  type ModelRequest,
  type ModelResponse,
  model,
} from './generate/model.ts';
export type { Prompt, PromptOptions } from './generate/prompt.ts';
export { historyPlace } from './generate/template.ts';
export { providerTool, type Tool, type ToolContext, tool } from './generate/tool.ts';
export type { Diff } from './protocol/diff.ts';
export type { Message, Part, ToolRequestPart, ToolResponsePart } from './protocol/message.ts';
export type { Page, SessionInfo } from './protocol/session.ts';
export type { Snapshot, SnapshotEvent, SnapshotStatus } from './protocol/snapshot.ts';
export type { Artifact, State } from './protocol/state.ts';
export type { Chunk, FinishReason, Init, Input, Output, Usage } from './protocol/turn.ts';
export { memoryStore } from './session/memory-store/memory-store.ts';
export { always, never, on, onChange, type SnapshotPolicy } from './session/policy.ts';
export { currentSession, type Session } from './session/session.ts';
export type { SnapshotStore, Store } from './session/store.ts';
