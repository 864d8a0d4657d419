import { defined, type Json } from '../core/json/json.ts';
import type { Cost, Input } from '../protocol/turn.ts';
import { addCost } from '../protocol/usage.ts';
import { type Divergence, spoken, tokensOf } from './compare.ts';
import type { SkippedTurn, TurnSide } from './recorded-session.ts';

/** The score of a turn: 1 is right, 0 is wrong. */
interface TurnScore {
  /** The name of the scorer. */
  readonly name: string;
  /** From 0 to 1. */
  readonly score: number;
  /** Why. */
  readonly reason?: string;
}

/** Tokens, cost and time of one side of a turn. */
interface TurnCost {
  /** Number of tokens. */
  readonly tokens: number;
  /** Millionths by currency; absent where models have no price. */
  readonly cost?: Cost;
  /** Milliseconds. */
  readonly time: number;
}

/** One side of a turn, as reports show it. */
interface ShownSide extends TurnCost {
  /** The text of the answer. */
  readonly text: string;
  /** The tool calls. */
  readonly toolCalls: readonly {
    readonly name: string;
    readonly input: Json;
    readonly output?: Json;
    readonly interrupt?: Json;
  }[];
  /** How the turn ended. */
  readonly finishReason?: string;
  /** Why the turn failed. */
  readonly error?: TurnSide['error'];
}

/** One replayed turn. */
export interface TurnReport {
  /** The session. */
  readonly sessionId: string;
  /** The name of the agent. */
  readonly agent: string;
  /** The recorded snapshot. */
  readonly snapshotId: string;
  /** The index of the turn in its session. */
  readonly turnIndex: number;
  /** The input of the turn. */
  readonly input: Input;
  /** The differences. */
  readonly divergences: readonly Divergence[];
  /** The scores. */
  readonly scores: readonly TurnScore[];
  /** Effects of tool calls that could not be repeated, because they were not recorded. */
  readonly missingEffects: readonly string[];
  /** The turn as it was recorded. */
  readonly recorded: ShownSide;
  /** The turn as it was replayed. */
  readonly replayed: ShownSide;
}

/** The result of a replay. */
export interface ReplayReport {
  /** The replayed turns. */
  readonly turns: readonly TurnReport[];
  /** Turns and sessions that were not replayed, with the reasons. */
  readonly skipped: readonly SkippedTurn[];
  /** Number of sessions. */
  readonly sessions: number;
  /** How many turns differ from their recording. */
  readonly divergent: number;
  /** Whether at least one turn was replayed, and none differs. */
  readonly same: boolean;
  /** The mean of each scorer, by name. */
  readonly scores: Readonly<Record<string, number>>;
  /** The sums of the recording. */
  readonly recorded: TurnCost;
  /** The sums of the replay. */
  readonly replayed: TurnCost;
  /** Why the replay ended before all turns were replayed. */
  readonly stopped?: 'budget' | 'aborted';
}

export function toReport(
  turns: readonly TurnReport[],
  rest: Pick<ReplayReport, 'skipped' | 'sessions' | 'stopped'>,
): ReplayReport {
  const divergent = turns.filter(({ divergences }) => divergences.length > 0).length;
  return {
    turns,
    ...rest,
    divergent,
    // A replay of nothing shows nothing, so a check of `same` must not pass on a wrong id or an empty store.
    same: turns.length > 0 && divergent === 0,
    scores: meansOf(turns),
    recorded: sumOf(turns.map(({ recorded }) => recorded)),
    replayed: sumOf(turns.map(({ replayed }) => replayed)),
  };
}

function sumOf(costs: readonly TurnCost[]): TurnCost {
  const cost = costs.reduce<Cost>((total, each) => addCost(total, each.cost ?? {}), {});
  return {
    tokens: sum(costs.map(({ tokens }) => tokens)),
    ...(Object.keys(cost).length > 0 && { cost }),
    time: sum(costs.map(({ time }) => time)),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, each) => total + each, 0);
}

function meansOf(turns: readonly TurnReport[]): Record<string, number> {
  const all = new Map<string, number[]>();
  for (const { scores } of turns)
    for (const { name, score } of scores) all.set(name, [...(all.get(name) ?? []), score]);
  return Object.fromEntries([...all].map(([name, values]) => [name, sum(values) / values.length]));
}

export function shownSide(side: TurnSide): ShownSide {
  const { toolCalls, finishReason, error, time = 0 } = side;
  const { cost } = side.usage ?? {};
  return {
    text: spoken(side),
    toolCalls: toolCalls.map(({ name, input, output, interrupt }) =>
      defined({ name, input, output, interrupt }),
    ),
    ...defined({ finishReason, cost }),
    ...(error && { error: { status: error.status, message: error.message } }),
    tokens: tokensOf(side),
    time,
  };
}
