import type { Input } from '../../protocol/turn.ts';
import type { Divergence } from '../compare/divergence.ts';
import type { TurnSide } from '../recording/recorded-session.ts';
import type { TurnScore } from '../report/report.ts';

/** What a scorer looks at. */
export interface ScoredTurn {
  /** The input of the turn. */
  readonly input: Input;
  /** The turn as it was recorded. */
  readonly recorded: TurnSide;
  /** The turn as it was replayed. */
  readonly replayed: TurnSide;
  /** The differences. */
  readonly divergences: readonly Divergence[];
}

/** A score from 0 to 1, or whether the turn is right. */
export type Verdict =
  | number
  | boolean
  | { readonly score: number | boolean; readonly reason?: string };

/** Scores a replayed turn. */
export type ScoreFunction = (turn: ScoredTurn) => Verdict | Promise<Verdict>;

/** A function, or a function with a name for the report. */
export type Scorer = ScoreFunction | { readonly name: string; readonly score: ScoreFunction };

/** The scores of a turn. A scorer that throws gives 0 and its message. */
export async function scoreTurn(
  scorers: readonly Scorer[],
  turn: ScoredTurn,
): Promise<readonly TurnScore[]> {
  return await Promise.all(
    scorers.map(async (scorer, place) => {
      const name = scorer.name === '' ? `score ${place + 1}` : scorer.name;
      const score = typeof scorer === 'function' ? scorer : scorer.score;
      try {
        return { name, ...toScore(await score(turn)) };
      } catch (error) {
        const reason = error instanceof Error ? error.message : String(error);
        return { name, score: 0, reason };
      }
    }),
  );
}

function toScore(verdict: Verdict): Omit<TurnScore, 'name'> {
  if (typeof verdict !== 'object') return { score: Number(verdict) };
  const { score, reason } = verdict;
  return { score: Number(score), ...(reason !== undefined && { reason }) };
}
