export { type AgentToolOptions, agentTool } from './agent/define/agent-tool.ts';
export { backgroundAgentTools } from './agent/define/background-tools.ts';
export type { AgentOptions, CustomAgentOptions } from './agent/define/define.ts';
export { type DefineTool, type ToolExtras, tool } from './agent/define/define-tool.ts';
export { resumeRun } from './agent/define/resume-run.ts';
export type {
  Agent,
  AgentMetadata,
  CallOptions,
  InvokeOptions,
  RunOptions,
} from './agent/spec/agent.ts';
export type { DispatchedRun, Dispatcher, QueueOptions } from './agent/spec/dispatcher.ts';
export type { ErrorInfo, ErrorListener, ErrorPhase } from './agent/spec/error-reports.ts';
export type {
  AgentHandler,
  AgentResult,
  AgentSession,
  HandlerIo,
  Responder,
  TurnFunction,
  TurnInfo,
  TurnResult,
} from './agent/spec/handler.ts';
export type { TitledState } from './agent/spec/options.ts';
export type { AgentLimits, Concurrency, RunEnd, Transform } from './agent/spec/spec.ts';
export type {
  AgentApi,
  Answers,
  ApiCallOptions,
  ApiInvokeOptions,
  Chat,
  RunHandle,
  SessionRef,
  StartedRun,
} from './api/agent-api.ts';
export type { OutputAccessors, StateAccessors } from './api/describe.ts';
export type { Interrupt, InterruptAnswer } from './api/interrupts.ts';
export type { ResumeInput } from './api/resume-input.ts';
export type { SnapshotRef } from './api/snapshot-ref.ts';
export { isTurnError, TurnError } from './api/turn-error.ts';
export type { TurnInput } from './api/turn-input.ts';
export type {
  AgentConnection,
  AgentStream,
  AgentTypes,
  ChunkOf,
  EventId,
  FailureOptions,
  LoadedSession,
  LoadedSnapshot,
  OutputError,
  OutputOf,
  RequestOptions,
  SessionOf,
  SnapshotOf,
  StateOf,
  TurnOutput,
  WatchEvent,
  WireTypes,
} from './api/types.ts';
export { type App, type AppOptions, waymark } from './app.ts';
export type { Action, ActionDescriptor } from './core/action.ts';
export {
  type ErrorBody,
  isWaymarkError,
  type Status,
  WaymarkError,
  type WaymarkErrorOptions,
} from './core/error.ts';
export type { NewId } from './core/id.ts';
export type { Json, JsonObject } from './core/json/json.ts';
export type { JsonPatch } from './core/json/patch.ts';
export type { InferSchema, JsonSchema, Schema } from './core/schema/schema.ts';
export { type Clock, systemClock } from './core/time/clock.ts';
export type {
  ClaimedRun,
  ClaimRuns,
  Engine,
  EngineAgent,
  EngineEnv,
  EngineStatus,
  WorkOptions,
} from './engine/engine.ts';
export { localEngine } from './engine/local-engine.ts';
export type { Recovery } from './engine/recovery.ts';
export type { DocumentLike } from './generate/document.ts';
export type { GenerateChunk } from './generate/generate-chunk.ts';
export type { GenerateOptions } from './generate/generate-options.ts';
export type { GenerateResponse } from './generate/generate-response.ts';
export type { GenerateStream } from './generate/generate-stream.ts';
export {
  type HistorySelection,
  lastMessages,
  type TokenCounter,
  tokenBudget,
} from './generate/history.ts';
export { interrupt } from './generate/interrupt.ts';
export type { LanguageModel } from './generate/language-model/types.ts';
export type { Limits } from './generate/limits.ts';
export { modelMessage, systemMessage, toolMessage, userMessage } from './generate/message.ts';
export { fallback } from './generate/middleware/fallback.ts';
export type { Middleware, ModelStep, ToolStep } from './generate/middleware/middleware.ts';
export { retry } from './generate/middleware/retry.ts';
export { toolApproval } from './generate/middleware/tool-approval.ts';
export {
  type Model,
  type ModelConfig,
  type ModelRef,
  type ModelRequest,
  type ModelResponse,
  model,
} from './generate/model.ts';
export { closeToolRequests } from './generate/open-requests.ts';
export type { OutputOptions } from './generate/output/output.ts';
export type { Prompt, PromptOptions, RenderedPrompt } from './generate/prompt.ts';
export { resource } from './generate/resource.ts';
export { rollingSummary, type Summarize } from './generate/rolling-summary.ts';
export { historyPlace } from './generate/template.ts';
export { providerTool, type Tool, type ToolContext, type ToolOptions } from './generate/tool.ts';
export type { ToolRef, ToolSource, ToolSourceScope } from './generate/tool-source.ts';
export type { Diff } from './protocol/diff.ts';
export type {
  CustomPart,
  DataPart,
  MediaPart,
  Message,
  Part,
  ReasoningPart,
  ResourcePart,
  Role,
  TextPart,
  ToolRequest,
  ToolRequestPart,
  ToolResponse,
  ToolResponsePart,
} from './protocol/message.ts';
export { textOf } from './protocol/messages/text.ts';
export { openToolRequests, toolRequestsOf } from './protocol/messages/tool-round.ts';
export type { Page, SessionInfo } from './protocol/session.ts';
export type { Snapshot, SnapshotEvent, SnapshotStatus } from './protocol/snapshot.ts';
export type { Artifact, State } from './protocol/state.ts';
export type { Chunk, FinishReason, Init, Input, Output, Usage } from './protocol/turn.ts';
export { always, never, on, onChange, type SnapshotPolicy } from './session/policy.ts';
export { currentSession, type Session } from './session/session.ts';
export type {
  QueueHandoff,
  RunRecord,
  Scope,
  SessionFilter,
  SnapshotStore,
  Store,
  Transaction,
} from './store/contract/store.ts';
export { memoryStore } from './store/memory/memory-store.ts';
