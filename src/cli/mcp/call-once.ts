import { failedPrecondition, messageOf } from '../../core/error.ts';
import type { Json, JsonObject } from '../../core/json/json.ts';
import { runToolOnce } from '../../generate/tool/run-tool-once.ts';
import type { Tool } from '../../generate/tool/tool.ts';
import { askForm, isForm } from '../chat/ask.ts';
import { Lines } from '../chat/lines.ts';
import type { Terminal } from '../terminal.ts';
import { safe, shortJson } from '../text/format.ts';

/** Calls a tool outside of a conversation. In a terminal, questions of its server are asked. */
export async function callOnce(
  tool: Tool,
  input: JsonObject,
  terminal: Terminal,
): Promise<{ readonly output: Json; readonly content: readonly JsonObject[] }> {
  let answer: { readonly resumed: Json; readonly interrupted: Json } | undefined;
  const stream = (progress: Json): void => terminal.progress(shortJson(progress));
  for (;;) {
    const attempt = await runToolOnce(tool, input, { ref: 'test', answer, stream });
    if ('output' in attempt) return attempt;
    const { interrupted } = attempt;
    answer = { interrupted, resumed: await acceptedAnswer(tool, interrupted, terminal) };
  }
}

/** Asks until the tool accepts the answer. */
async function acceptedAnswer(tool: Tool, asked: Json, terminal: Terminal): Promise<Json> {
  for (;;) {
    const answer = await answerOf(asked, terminal);
    try {
      await tool.checkResumed?.(answer, asked);
      return answer;
    } catch (error) {
      terminal.note(safe(messageOf(error)));
    }
  }
}

async function answerOf(asked: Json, terminal: Terminal): Promise<Json> {
  if (!terminal.interactive || !isForm(asked)) {
    throw failedPrecondition(
      `The server asks ${shortJson(asked, 200)}. Run this in a terminal to answer.`,
    );
  }
  // Ctrl-C ends the input, and so cancels the question.
  const lines = new Lines(terminal, () => lines.close());
  try {
    return (await askForm(asked, (prompt) => lines.next(prompt), terminal)) ?? { action: 'cancel' };
  } finally {
    lines.close();
  }
}
