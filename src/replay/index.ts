export type { PromptChanges } from '../agent/spec/spec.ts';
export type { ToolRecord } from '../protocol/tool-record.ts';
export type { Divergence, DivergenceKind, Tolerance } from './compare.ts';
export type { SessionSource, StoredSessions } from './find-sessions.ts';
export { type JudgeOptions, judge } from './judge.ts';
export type { ReplayBudget, ReplayChanges, ReplayOptions, ReplayProgress } from './options.ts';
export {
  type RecordedSession,
  type RecordedTurn,
  recordedSession,
  type SkippedTurn,
  type TurnSide,
} from './recorded-session.ts';
export type { StubbedCall, ToolMode, ToolModes } from './recorded-tools.ts';
export { type RedactText, redactExport } from './redact-export.ts';
export { replay } from './replay.ts';
export type {
  ReplayReport,
  ReplayTotals,
  ShownSide,
  TurnCost,
  TurnReport,
  TurnScore,
} from './report.ts';
export type { ScoredTurn, ScoreFunction, Scorer, Verdict } from './scorers.ts';
export { contains, exact, matchesSchema, type ScoredField } from './scorers.ts';
export { scriptedModelFrom } from './scripted-model-from.ts';
export { type TestFileOptions, toTestFile } from './test-file.ts';
export type { ToolCall } from './tool-calls.ts';
