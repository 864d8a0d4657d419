import { messageOf } from '../core/error.ts';
import { defined, type Json, jsonEqual } from '../core/json/json.ts';
import { parse, type Schema } from '../core/schema/schema.ts';
import type { Input } from '../protocol/turn.ts';
import { type Divergence, spoken } from './compare.ts';
import type { TurnSide } from './recorded-session.ts';
import type { TurnReport } from './report.ts';

/** A turn as scorers get it. */
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
type Verdict = number | boolean | { readonly score: number | boolean; readonly reason?: string };

/** Scores a replayed turn. */
type ScoreFunction = (turn: ScoredTurn) => Verdict | Promise<Verdict>;

/** A function, or a function with a name for the report. */
export type Scorer = ScoreFunction | { readonly name: string; readonly score: ScoreFunction };

/** The scores of a turn. A scorer that throws gives 0 and its message. */
export async function scoreTurn(
  scorers: readonly Scorer[],
  turn: ScoredTurn,
): Promise<TurnReport['scores']> {
  return await Promise.all(
    scorers.map(async (scorer, place) => {
      const name = scorer.name === '' ? `score ${place + 1}` : scorer.name;
      const score = typeof scorer === 'function' ? scorer : scorer.score;
      try {
        return { name, ...toScore(await score(turn)) };
      } catch (error) {
        return { name, score: 0, reason: messageOf(error) };
      }
    }),
  );
}

function toScore(verdict: Verdict): Omit<TurnReport['scores'][number], 'name'> {
  if (typeof verdict !== 'object') return { score: Number(verdict) };
  const { score, reason } = verdict;
  return { score: Number(score), ...defined({ reason }) };
}

/** The part of a turn that is scored. `output` is the structured output, or the text of an agent without one. */
type ScoredField = 'text' | 'output' | 'custom' | 'artifacts' | 'toolCalls' | 'finishReason';

/** 1 if the field is the same as recorded. */
export function exact(field: ScoredField): Scorer {
  return {
    name: `exact ${field}`,
    score: ({ recorded, replayed }) => jsonEqual(fields[field](recorded), fields[field](replayed)),
  };
}

/** 1 if the text of the field contains a text. @default what was recorded */
export function contains(field: ScoredField, expected?: string): Scorer {
  return {
    name: expected === undefined ? `contains ${field}` : `${field} contains "${expected}"`,
    score: ({ recorded, replayed }) =>
      asText(fields[field](replayed)).includes(expected ?? asText(fields[field](recorded))),
  };
}

/** 1 if the field fits a schema. */
export function matchesSchema(field: ScoredField, schema: Schema): Scorer {
  return {
    name: `schema of ${field}`,
    async score({ replayed }) {
      try {
        await parse(schema, fields[field](replayed), `The ${field}`);
        return 1;
      } catch (error) {
        return { score: 0, reason: messageOf(error) };
      }
    },
  };
}

const fields: Readonly<Record<ScoredField, (side: TurnSide) => Json>> = {
  text: spoken,
  output: (side) => side.output ?? parsed(spoken(side)),
  toolCalls: ({ toolCalls }) => toolCalls.map(({ name, input }) => ({ name, input })),
  custom: ({ custom = null }) => custom,
  artifacts: ({ artifacts }) => artifacts as unknown as Json,
  finishReason: ({ finishReason = null }) => finishReason,
};

/** A text that is JSON, as its value: a recording has only the text of a structured output. */
function parsed(text: string): Json {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

function asText(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
