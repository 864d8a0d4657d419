export type { PromptChanges } from '../agent/spec/spec.ts';
export type { ToolRecord } from '../protocol/messages/tool-record.ts';
export type { Divergence, DivergenceKind, Tolerance } from './compare/divergence.ts';
export type { ReplayBudget, ReplayChanges, ReplayOptions, ReplayProgress } from './options.ts';
export {
  type RecordedSession,
  type RecordedTurn,
  recordedSession,
  type SkippedTurn,
  type TurnSide,
} from './recording/recorded-session.ts';
export { type RedactText, redactExport } from './recording/redact-export.ts';
export { scriptedModelFrom } from './recording/scripted-model-from.ts';
export { type TestFileOptions, toTestFile } from './recording/test-file.ts';
export type { ToolCall } from './recording/tool-calls.ts';
export { replay } from './replay.ts';
export { toHtmlReport } from './report/html-report.ts';
export type {
  ReplayReport,
  ReplayTotals,
  ShownSide,
  TurnCost,
  TurnReport,
  TurnScore,
} from './report/report.ts';
export type { StubbedCall, ToolMode, ToolModes } from './run/tool-modes.ts';
export { type JudgeOptions, judge } from './score/judge.ts';
export type { ScoredTurn, ScoreFunction, Scorer, Verdict } from './score/scorer.ts';
export { contains, exact, matchesSchema, type ScoredField } from './score/scorers.ts';
export type { SessionSource, StoredSessions } from './sources/session-source.ts';
