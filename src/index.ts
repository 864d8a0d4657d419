/**
 * The app, agents, tools, prompts, interrupts and the store in memory.
 *
 * @module
 */

export type { Agent, CallOptions, InvokeOptions } from './agent/contract/agent.ts';
export type { QueueOptions } from './agent/contract/dispatcher.ts';
export type { ErrorInfo } from './agent/contract/error-reports.ts';
export type {
  AgentHandler,
  AgentResult,
  AgentSession,
  HandlerIo,
  Responder,
  TurnFunction,
  TurnInfo,
  TurnResult,
  UndoableStep,
} from './agent/contract/handler.ts';
export type {
  Embedder,
  EmbeddingModel,
  EmbedTexts,
  Extraction,
  Memory,
  MemoryOptions,
  MemoryReading,
  MemoryRetention,
  MemoryScopeOption,
  MemoryUser,
  MemoryWhere,
} from './agent/contract/memory.ts';
export type { Logger, TelemetryOptions } from './agent/contract/observability.ts';
export type { AgentOptionsBase, CustomOf } from './agent/contract/options.ts';
export type {
  AgentLimits,
  ClientStateOptions,
  InterruptEvent,
  RunEnd,
  Transform,
  WorkspaceOf,
} from './agent/contract/spec.ts';
export {
  type AgentToolOptions,
  agentTool,
  backgroundAgentTools,
} from './agent/define/agent-tool.ts';
export {
  type AgentOptions,
  type DefineAgent,
  type DefineCustomAgent,
  type DefineTool,
  tool,
} from './agent/define/define.ts';
export type { AgentApi, Chat, PendingInterrupts, RunHandle } from './api/agent-api.ts';
export type { AgentMemory } from './api/agent-memory.ts';
export type { Answers, Interrupt, InterruptAnswer } from './api/interrupts.ts';
export type { CallerTool, SnapshotRef, TurnInput } from './api/turn-values.ts';
export { isTurnError, TurnError } from './api/turn-values.ts';
export type {
  AgentConnection,
  AgentStream,
  AgentTypes,
  LoadedSession,
  LoadedSnapshot,
  OutputOf,
  RequestOptions,
  TurnOutput,
  WatchEvent,
} from './api/types.ts';
export { type App, waymark } from './app.ts';
export type { AppOptions } from './app-options.ts';
export type { Action, ActionContext } from './core/action.ts';
export {
  isWaymarkError,
  type Status,
  WaymarkError,
  type WaymarkErrorOptions,
} from './core/error.ts';
export type { DatesAsText } from './core/json/dates.ts';
export type { Json, JsonObject } from './core/json/json.ts';
export type { InferSchema, InferSchemaInput, JsonSchema, Schema } from './core/schema/schema.ts';
export { type Clock, systemClock } from './core/time.ts';
export { type LocalEngine, localEngine } from './engine/local-engine.ts';
export type { Schedule, ScheduleInfo, ScheduleTimes } from './engine/schedule.ts';
export type { WorkUntilIdleOptions } from './engine/work-until-idle.ts';
export type { CompactOptions, SummaryRequest } from './generate/answer/history.ts';
export {
  type HistoryScope,
  type HistorySelection,
  lastMessages,
  tokenBudget,
} from './generate/answer/history.ts';
export type { Price } from './generate/answer/price.ts';
export type { GenerateResponse } from './generate/answer/response.ts';
export type { GenerateCall } from './generate/generate.ts';
export type { GenerateOptions, GenerateSettings, Limits } from './generate/generate-options.ts';
export type { GenerateChunk, GenerateStream } from './generate/generate-stream.ts';
export type { LanguageModel } from './generate/language-model/types.ts';
export type { Middleware, ModelStep, ToolStep } from './generate/middleware/middleware.ts';
export { fallback, retry } from './generate/middleware/retry.ts';
export { toolApproval } from './generate/middleware/tool-approval.ts';
export {
  type Model,
  type ModelCall,
  type ModelConfig,
  type ModelOptions,
  type ModelRef,
  type ModelRequest,
  type ModelResponse,
  type ModelRunner,
  model,
  type ToolChoice,
  type ToolDefinition,
} from './generate/model.ts';
export type { OutputSetting } from './generate/output/output.ts';
export type { Prompt, PromptOptions } from './generate/prompt/prompt.ts';
export { type ResourceRef, resource } from './generate/resource.ts';
export type { Skill, SkillFile, SkillSource } from './generate/skill/skill.ts';
export type { SkillsOption } from './generate/skill/skills.ts';
export {
  type Content,
  historyPlace,
  type Template,
  type TemplateScope,
} from './generate/template.ts';
export { callerTools } from './generate/tool/caller-tools.ts';
export {
  type InterruptOptions,
  interrupt,
  providerTool,
  type Tool,
  type ToolOptions,
} from './generate/tool/tool.ts';
export type { InterruptDeadline, ToolContext } from './generate/tool/tool-context.ts';
export type {
  ToolRef,
  ToolSource,
  ToolSourceScope,
  ToolSourceStatus,
} from './generate/tool/tool-source.ts';
export type {
  ToolEffect,
  Undo,
  UndoAction,
  UndoCall,
  UndoFunction,
  UndoOptions,
} from './generate/tool/undo.ts';
export type { TextEdit } from './protocol/artifacts.ts';
export type {
  MemoryEntry,
  MemoryHit,
  MemoryOfTurn,
  MemoryOrigin,
  MemoryVersionInfo,
} from './protocol/memory.ts';
export type { Message, Part } from './protocol/message.ts';
export type { MessageOptions } from './protocol/message-page.ts';
export { type Summary, summaryOf, textOf } from './protocol/messages.ts';
export type { OpenedFile, OpenFileOptions } from './protocol/opened-file.ts';
export type { DeadRun, RunInfo } from './protocol/run.ts';
export type { Page, SessionInfo } from './protocol/session.ts';
export type { Snapshot, SnapshotEvent, SnapshotStatus } from './protocol/snapshot.ts';
export type { Artifact, State } from './protocol/state.ts';
export type {
  CallerToolInfo,
  Chunk,
  Cost,
  FinishReason,
  Init,
  Input,
  ModelChunk,
  Output,
  Usage,
} from './protocol/turn.ts';
export { always, never, on, onChange, type SnapshotPolicy } from './session/policy.ts';
export { currentSession, type NewFile, type Session } from './session/session.ts';
export type { Scope, SessionFilter, SnapshotStore, Store } from './store/contract/store.ts';
export { type MemoryStoreOptions, memoryStore } from './store/memory/memory-store.ts';
export type { Webhook, WebhookOptions } from './webhook/options.ts';
export { signWebhook, verifyWebhook } from './webhook/sign.ts';
export type { Webhooks } from './webhook/webhooks.ts';
