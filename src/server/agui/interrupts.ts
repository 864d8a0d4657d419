import type { Agent, CallOptions } from '../../agent/contract/agent.ts';
import type { Interrupt, InterruptAnswer } from '../../api/interrupts.ts';
import { invalid, type WaymarkError } from '../../core/error.ts';
import { isJsonObject, type Json, type JsonObject, toJson } from '../../core/json/json.ts';
import { isExecutedByCaller } from '../../generate/tool/caller-tools.ts';
import type { ToolInfo } from '../../protocol/requests.ts';
import { short } from '../http/answer.ts';
import { askedBy, decideApproval, type Question, questionsOf } from '../http/question.ts';
import { toolCallId } from '../http/turns-of.ts';
import { asText, type PostedMessage, type ResumeEntry, toParts } from './shapes.ts';

/** Whether a call waits for a tool of the client, whose result is a message, and not for an answer to an interrupt. */
export function isClientTool({ metadata }: Interrupt): boolean {
  return isExecutedByCaller(metadata);
}

/** The interrupts of the agent's own tools, as clients show them. */
export async function toAguiInterrupts(
  agent: Agent,
  snapshotId: string,
  interrupts: readonly Interrupt[],
): Promise<readonly object[]> {
  const asked = interrupts.filter((interrupt) => !isClientTool(interrupt));
  if (asked.length === 0) return [];
  const questions = await questionsOf(agent, snapshotId, asked);
  return questions.map(({ key, message, interrupt, tool }) => {
    const { toolName, input, metadata, request } = interrupt;
    return {
      id: key,
      reason: askedBy(interrupt, tool).kind === 'approval' ? 'tool_approval' : 'input_required',
      message,
      toolCallId: toolCallId(request.toolRequest),
      responseSchema: responseSchema(interrupt, tool),
      metadata: { tool: toolName, input: input ?? null, data: metadata },
    };
  });
}

function responseSchema(interrupt: Interrupt, tool: ToolInfo | undefined): JsonObject {
  const { kind, schema = {} } = askedBy(interrupt, tool);
  if (kind !== 'approval') return schema;
  return {
    type: 'object',
    properties: {
      approved: { type: 'boolean' },
      reason: { type: 'string' },
      editedArgs: tool?.inputSchema ?? { type: 'object' },
    },
    required: ['approved'],
  };
}

/** The interrupts that entries of `resume` answer: those of one snapshot of the thread. */
export interface Asked {
  readonly snapshotId: string;
  readonly interrupts: readonly Interrupt[];
}

/** Finds what entries of `resume` answer. */
export async function findAsked(
  agent: Agent,
  threadId: string,
  entries: readonly ResumeEntry[],
  options: CallOptions,
): Promise<Asked> {
  const ids = new Set(entries.map((entry) => entry.interruptId.split(':', 1)[0] ?? ''));
  const [snapshotId = ''] = ids;
  if (ids.size > 1) throw unknownInterrupt(entries.at(-1));
  const snapshot = await agent.getSnapshot({ snapshotId }, options);
  if (snapshot?.sessionId !== threadId) throw unknownInterrupt(entries[0]);
  return { snapshotId, interrupts: snapshot.interrupts };
}

/** The answers that entries of `resume` give. */
export async function toAnswers(
  agent: Agent,
  { snapshotId, interrupts }: Asked,
  entries: readonly ResumeEntry[],
): Promise<readonly InterruptAnswer[]> {
  const questions = await questionsOf(agent, snapshotId, interrupts);
  return entries.map((entry) => {
    const asked = questions.find(({ key }) => key === entry.interruptId);
    if (asked === undefined) throw unknownInterrupt(entry);
    return toAnswer(asked, entry);
  });
}

function toAnswer(
  { interrupt, tool }: Question,
  { interruptId: id, status, payload }: ResumeEntry,
): InterruptAnswer {
  if (status === 'cancelled') return interrupt.decline();
  const { kind } = askedBy(interrupt, tool);
  if (kind === 'output' || isClientTool(interrupt)) {
    return interrupt.respond(toJson(payload ?? null, 'The payload'));
  }
  // Only a clear yes approves: an entry without a payload says nothing.
  if (payload === undefined || payload === null) {
    throw invalid(
      `The answer to ${short(id)} has no payload. Send one that fits its responseSchema, or the status "cancelled".`,
    );
  }
  const value = toJson(payload, 'The payload');
  if (kind === 'data') return interrupt.approve({ resumed: value });
  const { approved, editedArgs, args } = isJsonObject(value) ? value : {};
  const edited = editedArgs ?? args;
  if (approved === true && edited !== undefined) return interrupt.approve({ input: edited });
  const decision = typeof value === 'boolean' ? { approved: value } : value;
  if (typeof value === 'boolean' || typeof approved === 'boolean') {
    return decideApproval(interrupt, decision) ?? interrupt.decline();
  }
  return interrupt.approve({ resumed: value });
}

/** The answer that a posted tool message gives to a call; declined where there is none. */
export function toToolAnswer(
  interrupt: Interrupt,
  message: PostedMessage | undefined,
): InterruptAnswer {
  if (message === undefined) return interrupt.decline();
  if (typeof message.error === 'string') {
    return interrupt.respond({ error: message.error, content: textOf(message) });
  }
  return interrupt.respond(textOf(message));
}

/** The posted result of each call, by its id; the last one counts. */
export function toolResults(
  messages: readonly PostedMessage[],
): ReadonlyMap<string, PostedMessage> {
  return new Map(
    messages.flatMap((message) =>
      message.role === 'tool' && typeof message.toolCallId === 'string'
        ? [[message.toolCallId, message] as const]
        : [],
    ),
  );
}

function textOf(message: PostedMessage): Json {
  const parts = toParts(message);
  if (parts.every((part) => 'text' in part)) return parts.map(({ text }) => text).join('');
  return asText(parts as unknown as Json);
}

function unknownInterrupt(entry: ResumeEntry | undefined): WaymarkError {
  return invalid(
    `There is no interrupt ${short(entry?.interruptId ?? '')} in this thread. Answer all interrupts of the latest run, by the ids of its outcome.`,
  );
}
