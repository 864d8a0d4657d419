/**
 * The client for agents on a server, for browsers and Node.js.
 *
 * @module
 */

export type {
  AgentApi,
  ApiCallOptions,
  ApiInvokeOptions,
  Chat,
  DiffOptions,
  EditChange,
  EditOptions,
  PendingInterrupts,
  RestoreOptions,
  RunHandle,
  SessionRef,
  StartedRun,
  UsageQuery,
  WatchOptions,
} from '../api/agent-api.ts';
export type { AgentMemory } from '../api/agent-memory.ts';
export type { Answers, Interrupt, InterruptAnswer, ResumeInput } from '../api/interrupts.ts';
export type {
  CallerTool,
  OutputAccessors,
  SnapshotRef,
  StateAccessors,
  TurnInput,
} from '../api/turn-values.ts';
export { isTurnError, TurnError } from '../api/turn-values.ts';
export type {
  AgentConnection,
  AgentStream,
  AgentTypes,
  ChunkOf,
  FailureOptions,
  IfHead,
  LoadedSession,
  LoadedSnapshot,
  OutputOf,
  SessionOf,
  SnapshotOf,
  StateOf,
  TurnOutput,
  WatchEvent,
  WireTypes,
} from '../api/types.ts';
export { isWaymarkError, type Status, WaymarkError } from '../core/error.ts';
export type {
  MemoryEntry,
  MemoryHit,
  MemoryOfTurn,
  MemoryOrigin,
  MemoryVersionInfo,
} from '../protocol/memory.ts';
export type { Message, Part, ToolRequestPart, ToolResponsePart } from '../protocol/message.ts';
export type { MessageOptions, MessagePage } from '../protocol/message-page.ts';
export type { OpenedFile, OpenFileOptions } from '../protocol/opened-file.ts';
export type {
  AgentInfo,
  Diff,
  FileDiff,
  FileInfo,
  RetryResult,
  SteerResult,
  UsageReport,
  WaitingSession,
} from '../protocol/requests.ts';
export type { DeadRun, RunInfo, RunMode } from '../protocol/run.ts';
export type { Page, SessionInfo } from '../protocol/session.ts';
export type { Snapshot, SnapshotStatus } from '../protocol/snapshot.ts';
export type { Artifact, State } from '../protocol/state.ts';
export type { Chunk, Cost, FinishReason, Input, Output, Reset, Usage } from '../protocol/turn.ts';
export type { PlannedEffect, UndoPlan, UndoStatus } from '../protocol/undo.ts';
export type { SessionFilter, SnapshotListing } from '../store/contract/store.ts';
export { type Client, client, createClient, type Typed } from './client.ts';
export type { ClientOptions, WebSocketLike } from './options.ts';
export type { RemoteAgent, TypesOf } from './remote-agent.ts';
