import { internalsOf } from '../../agent/define/create-agent.ts';
import type { Agent } from '../../agent/spec/agent.ts';
import type { Interrupt, InterruptAnswer } from '../../api/interrupts.ts';
import { isJsonObject, type Json } from '../../core/json/json.ts';
import type { ToolRequest } from '../../protocol/message.ts';
import type { ToolInfo } from '../../protocol/requests.ts';
import { decideApproval } from './approval.ts';
import { type Form, formFor } from './form.ts';

/** An interrupt as a question to a person. */
export interface Question {
  /** Names the question in the whole session: `snapshotId:ref`. */
  readonly key: string;
  readonly message: string;
  readonly form: Form;
  /** The answer, for a value that the form has read. */
  readonly accept: (value: Json) => InterruptAnswer;
  readonly decline: Interrupt['decline'];
}

const longestMessage = 2000;

/** The interrupts of a snapshot as questions. */
export async function questionsOf(
  agent: Agent,
  snapshotId: string,
  interrupts: readonly Interrupt[],
): Promise<readonly Question[]> {
  const tools = await toolsOf(agent);
  return interrupts.map((interrupt) => {
    const tool = tools.find(({ name }) => name === interrupt.toolName);
    return {
      key: `${snapshotId}:${interrupt.ref ?? interrupt.toolName}`,
      message: messageOf(interrupt).slice(0, longestMessage),
      ...askedBy(interrupt, tool),
      decline: interrupt.decline,
    };
  });
}

/** The tools that the agent itself has, as far as they are known outside of a call. */
export async function toolsOf(agent: Agent): Promise<readonly ToolInfo[]> {
  try {
    return (await internalsOf(agent).spec.describe?.())?.tools ?? [];
  } catch {
    // What a prompt renders may need what only a call has.
    return [];
  }
}

function askedBy(
  interrupt: Interrupt,
  tool: ToolInfo | undefined,
): Pick<Question, 'form' | 'accept'> {
  const { metadata } = interrupt;
  if (tool?.interrupt === true) {
    return { form: formFor(tool.outputSchema), accept: interrupt.respond };
  }
  // The tool itself waits for data, such as the elicitation of another MCP server.
  if (isJsonObject(metadata) && isJsonObject(metadata.schema)) {
    return {
      form: formFor(metadata.schema),
      accept: (resumed) => interrupt.approve({ resumed }),
    };
  }
  return { form: approval, accept: (value) => decided(interrupt, value) };
}

const approval: Form = {
  schema: {
    type: 'object',
    properties: {
      approved: { type: 'boolean', title: 'Approve' },
      reason: { type: 'string', title: 'Reason' },
    },
    required: ['approved'],
  },
  read: (content) => content,
};

// Only a clear yes is a yes.
function decided(interrupt: Interrupt, value: Json): InterruptAnswer {
  return decideApproval(interrupt, value) ?? interrupt.decline();
}

function messageOf({ toolName, input, metadata, interrupts }: Interrupt): string {
  const said = wordsOf(metadata);
  if (said !== undefined) return said;
  const inside = interrupts.flatMap(callsOf);
  const calls = inside.length > 0 ? inside : [{ name: toolName, input }];
  const shown = calls.map((call) => `${call.name} ${JSON.stringify(call.input ?? {})}`);
  return `Waits for your answer: ${shown.join(', ')}`;
}

/** The tool calls that wait, inside sub-agents of any depth. */
function callsOf({ interrupts, request }: Interrupt): readonly ToolRequest[] {
  return interrupts.length > 0 ? interrupts.flatMap(callsOf) : [request.toolRequest];
}

function wordsOf(data: Json): string | undefined {
  if (typeof data === 'string') return data;
  if (!isJsonObject(data)) return undefined;
  const { message, question } = data;
  return [message, question].find((text): text is string => typeof text === 'string');
}
