import { spoken, tokensOf } from '../compare/compare-turns.ts';
import type { TurnSide } from '../recording/recorded-session.ts';
import type { ShownSide } from './report.ts';

/** What a report shows of a side. */
export function shownSide(side: TurnSide): ShownSide {
  const { toolCalls, finishReason, error, time = 0 } = side;
  const { cost } = side.usage ?? {};
  return {
    text: spoken(side),
    toolCalls: toolCalls.map(({ name, input, output, interrupt }) => ({
      name,
      input,
      ...(output !== undefined && { output }),
      ...(interrupt !== undefined && { interrupt }),
    })),
    ...(finishReason && { finishReason }),
    ...(error && { error: { status: error.status, message: error.message } }),
    tokens: tokensOf(side),
    ...(cost !== undefined && { cost }),
    time,
  };
}
