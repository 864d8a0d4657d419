import { WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';
import type { OutputRequest } from '../model.ts';

/** A way in which an answer can be structured: the instructions for the model, and how its text is parsed. */
export interface OutputFormat {
  readonly name: OutputFormatName;
  /** What a model that constrains its output itself is asked for. */
  request(schema: JsonSchema | undefined): OutputRequest | undefined;
  /** The instructions for a model that does not. */
  instructions(schema: JsonSchema | undefined): string | undefined;
  /** Reads a whole answer; UNAVAILABLE if it does not have the format. */
  parse(text: string): Json;
  /** Reads an answer that is still growing; `undefined` while there is nothing to say. */
  parsePartial(text: string): Json | undefined;
}

/** The ways in which an answer can be structured. */
export type OutputFormatName = 'text' | 'json' | 'array' | 'enum' | 'jsonl';

/**
 * The error for an answer that does not have the format it was asked for. The model failed, not the code around it, and may
 * answer correctly when it is asked again.
 */
export function badOutput(
  format: string,
  text: string,
  problem: string,
  cause?: unknown,
): WaymarkError {
  const shown = text.length > 200 ? `${text.slice(0, 200)}…` : text;
  return new WaymarkError(
    'UNAVAILABLE',
    `The model was asked for ${format} output, but its answer ${problem}. The answer: ${JSON.stringify(shown)}. Send the message again, or use a model with structured output.`,
    {
      details: { format, retryable: true },
      cause,
      // What the model said is content, which an agent may hide from its callers.
      publicMessage: `The model was asked for ${format} output, but its answer does not have that form. Send the message again, or use a model with structured output.`,
    },
  );
}
