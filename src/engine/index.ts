export { resumeRun } from '../agent/define/resume-run.ts';
export type { Agent } from '../agent/spec/agent.ts';
export type { DispatchedRun, Dispatcher, QueueOptions } from '../agent/spec/dispatcher.ts';
export type { ErrorInfo } from '../agent/spec/error-reports.ts';
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
