/**
 * The interface of engines, for authors of engines.
 *
 * @module
 */

export type { Agent } from '../agent/contract/agent.ts';
export type { DispatchedRun, Dispatcher, QueueOptions } from '../agent/contract/dispatcher.ts';
export type { ErrorInfo } from '../agent/contract/error-reports.ts';
export { resumeRun } from '../agent/define/resume-run.ts';
export type { Clock } from '../core/time.ts';
export type { RetryResult } from '../protocol/requests.ts';
export type { DeadRun } from '../protocol/run.ts';
export type {
  QueueHandoff,
  RunRecord,
  RunRef,
  Scope,
  TakenRun,
  Transaction,
} from '../store/contract/store.ts';
export type {
  ClaimedRun,
  DeadLetter,
  Engine,
  EngineAgent,
  EngineEnv,
  WorkOptions,
} from './engine.ts';
export type { Recovery } from './recovery.ts';
