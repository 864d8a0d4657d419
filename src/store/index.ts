/**
 * The interface of stores, their rules and errors, for authors of stores.
 *
 * @module
 */

export type {
  ErrorBody,
  Status,
  WaymarkErrorOptions,
} from '../core/error.ts';
export { type Json, type JsonObject, toJson } from '../core/json/json.ts';
export type { JsonPatch, JsonPatchOperation } from '../core/json/patch.ts';
export type { Clock } from '../core/time.ts';
export { fileHashesIn, treeHashesIn } from '../protocol/artifacts.ts';
export type { Message } from '../protocol/message.ts';
export type { Page, SessionInfo } from '../protocol/session.ts';
export type { EditNote, Snapshot, SnapshotEvent, SnapshotStatus } from '../protocol/snapshot.ts';
export type { Artifact, State } from '../protocol/state.ts';
export type { Chunk, FinishReason, Init, Input, Usage } from '../protocol/turn.ts';
export type { Totals } from '../protocol/usage.ts';
export { type ExportRow, type SessionExport, toSessionExport } from '../session/export-session.ts';
export type { History, HistoryPiece } from '../session/history.ts';
export {
  fromSessionExport,
  type ImportedSession,
  type ImportRow,
  renewIds,
} from '../session/import-session.ts';
export {
  fromPlainState,
  hashState,
  isStateHash,
  pathSnapshotsOf,
  type SessionState,
  toPlainState,
} from '../session/session-state.ts';
export { type NodeNames, namesOfNode } from '../session/tree-node.ts';
export type { Effect, EffectSupport, StoredEffect } from './contract/effect-support.ts';
export type { SteeringMessage, UndoRequest } from './contract/run.ts';
export type {
  Spend,
  SpendAmount,
  SpendBound,
  SpendCount,
  SpendEntry,
  SpendFilter,
  SpendGroup,
  SpendReservation,
  SpendSum,
  SpendSupport,
} from './contract/spend-support.ts';
export type {
  AbortSupport,
  Checkpointed,
  Claim,
  ClaimRequest,
  Committed,
  CommitWrite,
  DeadRunRecord,
  EventCursor,
  EventSupport,
  ExpectHead,
  Fault,
  FileHolder,
  FilePlace,
  FileSupport,
  ForkTarget,
  FoundMemoryNote,
  ListOptions,
  LoadedState,
  Lookup,
  MaintenanceOptions,
  MaintenanceProgress,
  MaintenanceSupport,
  MemoryExport,
  MemoryNote,
  MemoryPage,
  MemoryPlace,
  MemoryScope,
  MemorySession,
  MemorySource,
  MemorySpan,
  MemorySupport,
  MemoryVersion,
  MemoryWrite,
  MessageOptions,
  MessagePage,
  NewMemoryVersion,
  OpenFile,
  ParentRef,
  PartialWrite,
  PruneReport,
  QueueHandoff,
  RequestMark,
  RequestOutcome,
  RequestRecord,
  RetentionPolicy,
  RunCrash,
  RunEvent,
  RunMode,
  RunRecord,
  RunRef,
  RunRequest,
  RunSignal,
  RunSupport,
  RunUsage,
  Scope,
  SessionChange,
  SessionFilter,
  SnapshotListing,
  SnapshotStore,
  Spent,
  StateBase,
  StateWrite,
  Store,
  StoredFile,
  SuspectLimit,
  TakenRun,
  TimelineSupport,
  Transaction,
  TreeWrite,
  TurnMemoryVersion,
  VerifyOptions,
} from './contract/store.ts';
export { checkedStore } from './rules/checked-store.ts';
export type {
  ClaimDecision,
  ClaimFacts,
  RequestFact,
  SnapshotFact,
  StartFact,
} from './rules/decide-claim.ts';
export type { CommitDecision, CommitFacts } from './rules/decide-commit.ts';
export type { NamedFacts } from './rules/decide-timeline.ts';
export type { HolderFact } from './rules/holder.ts';
export { pageOf } from './rules/page.ts';
export type {
  RetainedSession,
  RetainedSnapshot,
  Selection,
} from './rules/retention.ts';
export { storeConstants, storeErrors, storeRules } from './rules/store-rules.ts';
