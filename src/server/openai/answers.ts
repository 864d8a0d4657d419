import type { Interrupt, InterruptAnswer } from '../../api/interrupts.ts';
import { isJsonObject, type Json, toJson } from '../../core/json/json.ts';
import type { ToolInfo } from '../../protocol/requests.ts';
import { short } from '../http/errors.ts';
import { decideApproval } from '../http/question.ts';
import { badRequest } from './errors.ts';
import { toCallId } from './ids.ts';
import type { CallOutput } from './input.ts';

/** The interrupts that a client answers, and how. */
export interface AskedCalls {
  readonly interrupts: readonly Interrupt[];
  /** The snapshot that waits; absent where the client holds the state. */
  readonly snapshotId: string | undefined;
  /** The tools of the agent. */
  readonly tools: readonly ToolInfo[];
}

/** The outputs of function calls as answers to interrupts. */
export function toAnswers(
  outputs: readonly CallOutput[],
  { interrupts, snapshotId, tools }: AskedCalls,
): readonly InterruptAnswer[] {
  return outputs.map((given) => {
    const interrupt = interrupts.find((each) => toCallId(snapshotId, each) === given.callId);
    if (!interrupt) throw notAsked(given.callId);
    const tool = tools.find(({ name }) => name === interrupt.toolName);
    return answerTo(interrupt, tool, given);
  });
}

function answerTo(
  interrupt: Interrupt,
  tool: ToolInfo | undefined,
  { callId, output }: CallOutput,
): InterruptAnswer {
  // A tool of the caller, or one that only ever asks.
  if (tool === undefined || tool.interrupt === true) {
    return interrupt.respond(tool?.outputSchema ? parsed(output) : output);
  }
  const { metadata } = interrupt;
  const value = parsed(output);
  // The tool waits for data.
  if (isJsonObject(metadata) && isJsonObject(metadata.schema)) {
    return interrupt.approve({ resumed: value });
  }
  const decided = decideApproval(interrupt, value);
  if (decided) return decided;
  throw badRequest(
    `The tool ${short(interrupt.toolName)} runs on the server and waits for your approval. Answer ${short(callId)} with the output {"approved":true}, or {"approved":false,"reason":"…"}.`,
    { param: 'input', code: 'invalid_function_call_output' },
  );
}

/** JSON where the text is JSON, else the text. */
function parsed(text: string): Json {
  try {
    return toJson(JSON.parse(text), 'The output of a function call');
  } catch {
    return text;
  }
}

function notAsked(callId: string): Error {
  return badRequest(
    `No function call ${short(callId)} waits for an output: it has its output already, or belongs to another response. Continue from the response that called the function.`,
    { param: 'input', code: 'no_tool_call_found' },
  );
}
