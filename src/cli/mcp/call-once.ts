import { WaymarkError } from '../../core/error.ts';
import type { Json, JsonObject } from '../../core/json/json.ts';
import type { Tool, ToolContext } from '../../generate/tool.ts';
import { askForm, isForm } from '../chat/ask-form.ts';
import { Lines } from '../chat/lines.ts';
import type { Terminal } from '../terminal.ts';
import { shortJson } from '../text/safe.ts';

/** Calls a tool outside of a conversation. In a terminal, questions of its server are asked. */
export async function callOnce(
  tool: Tool,
  input: JsonObject,
  terminal: Terminal,
): Promise<{ readonly output: Json; readonly content: readonly JsonObject[] }> {
  let answer: { readonly resumed: Json; readonly interrupted: Json } | undefined;
  for (;;) {
    const content: JsonObject[] = [];
    let asked: Json | undefined;
    const context: ToolContext = {
      signal: new AbortController().signal,
      ref: 'test',
      context: {},
      resumed: answer?.resumed,
      interrupted: answer?.interrupted,
      idempotencyKey: 'test',
      attach: (...parts) => void content.push(...parts),
      stream: (progress) => terminal.progress(shortJson(progress)),
      interrupt(data = true) {
        asked = data;
        throw new WaymarkError('CANCELLED', 'The tool asks a question.');
      },
    };
    try {
      return { output: (await tool.run(input, context)) as Json, content };
    } catch (error) {
      if (asked === undefined) throw error;
      answer = { interrupted: asked, resumed: await answerOf(asked, terminal) };
      await tool.checkResumed?.(answer.resumed, answer.interrupted);
    }
  }
}

async function answerOf(asked: Json, terminal: Terminal): Promise<Json> {
  if (!terminal.interactive || !isForm(asked)) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `The server asks ${shortJson(asked, 200)}. Run this in a terminal to answer.`,
    );
  }
  const lines = new Lines(terminal, () => {});
  try {
    return (await askForm(asked, (prompt) => lines.next(prompt), terminal)) ?? { action: 'cancel' };
  } finally {
    lines.close();
  }
}
