import type { PromptChanges } from '../agent/contract/spec.ts';
import type { App } from '../app.ts';
import type { JsonObject } from '../core/json/json.ts';
import type { OptionNames } from '../core/options.ts';
import type { ModelRef } from '../generate/model.ts';
import type { Cost } from '../protocol/turn.ts';
import type { SessionSource } from './find-sessions.ts';
import type { RecordedSession, RecordedTurn } from './recorded-session.ts';
import type { ToolModes } from './recorded-tools.ts';
import type { TurnReport } from './report.ts';
import type { Scorer } from './scorers.ts';

/** Changes of a replay. Without changes, the agent answers as it is now. */
export interface ReplayChanges extends PromptChanges {
  /** The model, or a function that gives the model of each turn. @default the agent's */
  readonly model?: ModelRef | ((turn: RecordedTurn) => ModelRef);
  /** An app with the changed agents. @default the app that is replayed */
  readonly app?: App;
}

/** How far a replay has come. */
interface ReplayProgress {
  /** Number of sessions so far. */
  readonly sessions: number;
  /** Number of turns so far. */
  readonly turns: number;
  /** Number of turns so far that differ. */
  readonly divergent: number;
  /** The turn that was replayed last. */
  readonly turn?: TurnReport;
}

/** The budget of a replay, over all its turns and without scorers. When it is used up, the replay ends and says so. */
interface ReplayBudget {
  /** Maximum number of tokens. */
  readonly tokens?: number;
  /** By currency. */
  readonly cost?: Cost;
  /** Maximum number of turns. */
  readonly turns?: number;
}

/** Options of a replay. */
export interface ReplayOptions {
  /** The sessions: a filter over a store, session ids, export files or folders, or exported documents. */
  readonly sessions: SessionSource;
  /** Changes, for all sessions or for each. @default nothing */
  readonly with?: ReplayChanges | ((session: RecordedSession) => ReplayChanges);
  /** How tools are answered. @default 'recorded' */
  readonly tools?: ToolModes;
  /** `turns` starts each turn from its recorded state; in a `conversation` the new answers carry forward. @default 'turns' */
  readonly mode?: 'turns' | 'conversation';
  /** Whether branches off the path to the head are replayed. @default 'all' */
  readonly branches?: 'all' | 'head';
  /** A custom agent is code that may do anything, so it runs only where you say so. @default 'skip' */
  readonly customAgents?: 'skip' | 'run';
  /** Scorers, each called for every turn. */
  readonly score?: readonly Scorer[];
  /** Kinds and paths of differences that do not count, such as `text` or `/custom/updatedAt`. */
  readonly ignore?: readonly string[];
  /** How much more than recorded a turn may use, as factors: 1.2 allows a fifth more. @default any */
  readonly tolerance?: { readonly tokens?: number; readonly cost?: number; readonly time?: number };
  /** The caller's context, which sessions do not store. @default {} */
  readonly context?: JsonObject | ((session: RecordedSession) => JsonObject);
  /** The number of sessions that are replayed at a time. @default 4 */
  readonly concurrency?: number;
  /** The budget of the replay. @default unlimited */
  readonly budget?: ReplayBudget;
  /** A file for the results of each turn. A replay that was killed continues from it. */
  readonly resume?: string;
  /** Stops the replay after the current turn. */
  readonly signal?: AbortSignal;
  /** Called after each turn. */
  readonly onProgress?: (progress: ReplayProgress) => void;
}

export const replayOptionNames: OptionNames<ReplayOptions> = {
  sessions: true,
  with: true,
  tools: true,
  mode: true,
  branches: true,
  customAgents: true,
  score: true,
  ignore: true,
  tolerance: true,
  context: true,
  concurrency: true,
  budget: true,
  resume: true,
  signal: true,
  onProgress: true,
};
