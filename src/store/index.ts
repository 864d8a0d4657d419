export { createKeyedEmitter, type KeyedEmitter } from '../core/async/emitter.ts';
export type {
  ErrorBody,
  Status,
  WaymarkErrorOptions,
} from '../core/error.ts';
export { createIds, type NewId } from '../core/id.ts';
export { type Json, type JsonObject, toJson } from '../core/json/json.ts';
export type { JsonPatch, JsonPatchOperation } from '../core/json/patch.ts';
export type { Clock } from '../core/time.ts';
export { fileHashesIn } from '../protocol/artifacts.ts';
export {
  checkScope,
  checkSessionId,
  checkSnapshotId,
} from '../protocol/ids.ts';
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
  emptyState,
  fromPlainState,
  hashState,
  isStateHash,
  type Marks,
  type PathSnapshot,
  pathSnapshotsOf,
  type SessionState,
  toPlainState,
} from '../session/session-state.ts';
export type { SteeringMessage } from './contract/run.ts';
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
export {
  type AbortSupport,
  type Checkpointed,
  type Claim,
  type ClaimRequest,
  type Committed,
  type CommitWrite,
  type DeadRunRecord,
  type EventCursor,
  type EventSupport,
  type ExpectHead,
  type Fault,
  type FileHolder,
  type FilePlace,
  type FileSupport,
  handedOverHint,
  type ListOptions,
  type LoadedState,
  type Lookup,
  type MaintenanceOptions,
  type MaintenanceProgress,
  type MaintenanceSupport,
  type MessageOptions,
  type MessagePage,
  type OpenFile,
  type ParentRef,
  type PartialWrite,
  type PruneReport,
  type QueueHandoff,
  type RequestMark,
  type RequestOutcome,
  type RequestRecord,
  type RetentionPolicy,
  type RunCrash,
  type RunEvent,
  type RunMode,
  type RunRecord,
  type RunRef,
  type RunRequest,
  type RunSignal,
  type RunSupport,
  type RunUsage,
  requestTtl,
  type Scope,
  type SessionChange,
  type SessionFilter,
  type SnapshotListing,
  type SnapshotStore,
  type Spent,
  type StateBase,
  type StateWrite,
  type Store,
  type StoredFile,
  type SuspectLimit,
  savedPendingTtl,
  type TakenRun,
  type TimelineSupport,
  type Transaction,
  type VerifyOptions,
  waitingTtl,
} from './contract/store.ts';
export { checkedStore } from './rules/checked-store.ts';
export {
  type ClaimDecision,
  type ClaimFacts,
  decideClaim,
  type RequestFact,
  refuseHolder,
  type SessionFact,
  type StartFact,
  toClaim,
} from './rules/decide-claim.ts';
export { type CommitDecision, type CommitFacts, decideCommit } from './rules/decide-commit.ts';
export {
  decideLabel,
  decideRestore,
  type NamedFacts,
  refuseFork,
} from './rules/decide-timeline.ts';
export { accepted, type Decided, type SnapshotFact } from './rules/decision.ts';
export {
  notFound,
  notHeld,
  sessionExists,
  storeFault,
  taken,
} from './rules/errors.ts';
export { isAfter } from './rules/event-body.ts';
export { decideAbort, type HolderFact, isExpired, isHolder } from './rules/holder.ts';
export { pageOf } from './rules/page.ts';
export {
  checkPolicy,
  type RetainedSession,
  type RetainedSnapshot,
  type Selection,
  selectVictims,
} from './rules/retention.ts';
export { matchesQuery, passesFilter, searchTextOf } from './rules/session-filter.ts';
export { checkLabel, checkMetadata, checkTitle } from './rules/size-limits.ts';
export { spentInTurn } from './rules/spend.ts';
export { anySuspects, pickRuns } from './rules/suspects.ts';
