/**
 * Runs stored sessions again, and compares the outcomes.
 *
 * @module
 */

export type { PromptChanges } from '../agent/contract/spec.ts';
export type { ToolRecord } from '../protocol/tool-record.ts';
export type { Divergence } from './compare.ts';
export type { SessionSource } from './find-sessions.ts';
export { judge } from './judge.ts';
export type { ReplayChanges, ReplayOptions } from './options.ts';
export {
  type RecordedSession,
  type RecordedTurn,
  recordedSession,
  type SkippedTurn,
  type TurnSide,
} from './recorded-session.ts';
export type { ToolModes } from './recorded-tools.ts';
export { redactExport } from './redact-export.ts';
export { replay } from './replay.ts';
export type { ReplayReport, TurnReport } from './report.ts';
export { contains, exact, matchesSchema, type Scorer } from './scorers.ts';
export { scriptedModelFrom } from './scripted-model-from.ts';
export { toTestFile } from './test-file.ts';
export type { ToolCall } from './tool-calls.ts';
