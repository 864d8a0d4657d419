import { invalid } from '../../core/error.ts';
import { isJsonObject, type Json } from '../../core/json/json.ts';
import { untrustedSchema } from '../../core/schema/untrusted-schema.ts';
import type { CallerToolInfo } from '../../protocol/turn.ts';
import type { ToolChoice } from '../model.ts';
import { type Tool, tool } from './tool.ts';

/** How many tools a call may bring, and how long they may be as JSON, all together. */
const callerToolLimits = { count: 128, length: 262_144 } as const;

/** The data of the interrupt of such a tool. */
const executedByCaller = { executedBy: 'caller' } as const;

/** Whether a call waits for a result from its caller, not for an approval or the answer to a question of the agent's own tools. */
export function isExecutedByCaller(interrupt: Json | undefined): boolean {
  return isJsonObject(interrupt) && interrupt.executedBy === 'caller';
}

/**
 * The tools of a call (`tools` of its input), to be passed to `generate` by a custom agent. A call of one of them interrupts the
 * turn until the caller answers it. INVALID_ARGUMENT says what is wrong with one.
 *
 * @example
 * session.run(async ({ tools }) => {
 *   const { messages } = await app.generate({ messages: session.messages, tools: callerTools(tools) });
 *   session.addMessages(...messages);
 * });
 */
export function callerTools(given: readonly CallerToolInfo[] | undefined): readonly Tool[] {
  if (given === undefined || given.length === 0) return [];
  checkSize(given);
  const names = new Set<string>();
  return given.map((info) => {
    if (names.has(info.name)) throw invalid(`There are two tools "${info.name}" in this call.`);
    names.add(info.name);
    return toTool(info);
  });
}

/** Refuses tools of a call that the agent's own ones or its tool choice leave no place for. */
export function checkCallerTools(
  given: readonly Tool[],
  own: ReadonlyMap<string, Tool>,
  toolChoice: ToolChoice | undefined,
): void {
  if (given.length === 0) return;
  const taken = given.find(({ name }) => own.has(name));
  if (taken !== undefined) {
    throw invalid(`The agent already has a tool "${taken.name}". Rename the tool of this call.`);
  }
  if (toolChoice === 'none') {
    throw invalid(
      "The agent's `toolChoice` is 'none': its model calls no tools. Leave out `tools`.",
    );
  }
}

function toTool({ name, description = '', inputSchema }: CallerToolInfo): Tool {
  const input = untrustedSchema(inputSchema);
  const made = tool({ name, description, input }, (_, { interrupt }) =>
    interrupt(executedByCaller),
  );
  return {
    ...made,
    checkResumed: (_, interrupted) => {
      if (!isExecutedByCaller(interrupted)) return;
      throw invalid(`Tool "${name}" is executed by the caller. Answer the call with \`respond\`.`);
    },
  };
}

function checkSize(given: readonly CallerToolInfo[]): void {
  const { count, length } = callerToolLimits;
  if (given.length > count) {
    throw invalid(`This call has ${given.length} tools, of at most ${count}.`);
  }
  const size = JSON.stringify(given).length;
  if (size > length) {
    throw invalid(`The tools of this call have ${size} characters as JSON, of at most ${length}.`);
  }
}
