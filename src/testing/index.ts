/**
 * Scripted models, clocks and crash tests for the tests of your agents.
 *
 * @module
 */

export type {
  CrashPoint,
  CrashReport,
  LostState,
  RepeatedEffect,
} from './crash-test/crash-report.ts';
export { crashTest } from './crash-test/crash-test.ts';
export { formatCrashReport } from './crash-test/format-report.ts';
export type { AppSource, CrashTestOptions } from './crash-test/options.ts';
export { serveContractProcess } from './engine-contract/contract-process.ts';
export { type FakeClock, fakeClock } from './fake-clock.ts';
export {
  type ScriptedModel,
  type ScriptedReply,
  type ScriptStep,
  scriptedModel,
} from './scripted-model.ts';
