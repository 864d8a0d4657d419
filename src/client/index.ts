export type {
  AgentConnection,
  AgentStream,
  AgentTypes,
  Chat,
  ChunkOf,
  EventId,
  OutputOf,
  ResumeInput,
  SessionOf,
  SnapshotOf,
  StateOf,
  WatchEvent,
  WireTypes,
} from '../agent/spec/agent.ts';
export { isWaymarkError, type Status, WaymarkError } from '../core/error.ts';
export type { Diff } from '../protocol/diff.ts';
export type { Message, Part, ToolRequestPart, ToolResponsePart } from '../protocol/message.ts';
export type { AgentInfo, ToolInfo } from '../protocol/requests.ts';
export type { DeadRun, RunInfo, RunMode } from '../protocol/run.ts';
export type { Page, SessionInfo } from '../protocol/session.ts';
export type { Snapshot, SnapshotStatus } from '../protocol/snapshot.ts';
export type { Artifact, State } from '../protocol/state.ts';
export type { Chunk, FinishReason, Input, Output, Usage } from '../protocol/turn.ts';
export { type Client, client, createClient, type Typed } from './client.ts';
export type {
  ClientHeaders,
  ClientOptions,
  ReconnectOptions,
  WebSocketClass,
  WebSocketLike,
} from './options.ts';
export type {
  RemoteAgent,
  RemoteCallOptions,
  RemoteInvokeOptions,
  RemoteRunOptions,
  TypesOf,
} from './remote-agent.ts';
