import { type Json, jsonEqual } from '../../core/json/json.ts';
import { parse, type Schema } from '../../core/schema/schema.ts';
import { spoken } from '../compare/compare-turns.ts';
import type { TurnSide } from '../recording/recorded-session.ts';
import type { Scorer } from './scorer.ts';

/** What of a turn is scored. `output` is the structured output, or the text of an agent without one. */
export type ScoredField = 'text' | 'output' | 'custom' | 'artifacts' | 'toolCalls' | 'finishReason';

/** 1 if the field is the same as recorded. */
export function exact(field: ScoredField): Scorer {
  return {
    name: `exact ${field}`,
    score: ({ recorded, replayed }) =>
      jsonEqual(fieldOf(recorded, field), fieldOf(replayed, field)),
  };
}

/** 1 if the text of the field contains a text. @default what was recorded */
export function contains(field: ScoredField, expected?: string): Scorer {
  return {
    name: expected === undefined ? `contains ${field}` : `${field} contains "${expected}"`,
    score: ({ recorded, replayed }) =>
      asText(fieldOf(replayed, field)).includes(expected ?? asText(fieldOf(recorded, field))),
  };
}

/** 1 if the field fits a schema. */
export function matchesSchema(field: ScoredField, schema: Schema): Scorer {
  return {
    name: `schema of ${field}`,
    async score({ replayed }) {
      try {
        await parse(schema, fieldOf(replayed, field), `The ${field}`);
        return 1;
      } catch (error) {
        return { score: 0, reason: error instanceof Error ? error.message : String(error) };
      }
    },
  };
}

function fieldOf(side: TurnSide, field: ScoredField): Json {
  switch (field) {
    case 'text':
      return spoken(side);
    case 'output':
      return side.output ?? parsed(spoken(side));
    case 'toolCalls':
      return side.toolCalls.map(({ name, input }) => ({ name, input }));
    case 'custom':
      return side.custom ?? null;
    case 'artifacts':
      return side.artifacts as unknown as Json;
    case 'finishReason':
      return side.finishReason ?? null;
  }
}

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
