import { failedPrecondition, invalid, type Status, WaymarkError } from '../../core/error.ts';
import {
  defined,
  isJsonObject,
  type Json,
  type JsonObject,
  jsonEqual,
} from '../../core/json/json.ts';
import type {
  Message,
  ToolRequest,
  ToolRequestPart,
  ToolResponsePart,
} from '../../protocol/message.ts';
import {
  isInterrupted,
  lastToolRound,
  openToolRequests,
  requestKey,
} from '../../protocol/messages.ts';
import { recordOf, withRecord } from '../../protocol/tool-record.ts';
import type { Resume } from '../../protocol/turn.ts';
import { toolMessage } from '../template.ts';
import type { Tool } from './tool.ts';

/** The plan for one open request: it has its response, or its tool runs again, perhaps with edited input. */
export type ResumeStep =
  | {
      readonly request: ToolRequestPart;
      readonly response: ToolResponsePart;
      /** It expired, and the turn has to fail. */
      readonly isFailure?: boolean;
    }
  | { readonly request: ToolRequestPart; readonly resumed: Json; readonly isEdited?: boolean };

/** The metadata of a restart with edited input: the input that it replaces. */
const replacedInput = 'replacedInput';

/** An open request with its answer, or with the result that it had when another one was interrupted. */
type Answer =
  | { readonly request: ToolRequestPart; readonly entry: ToolResponsePart | ToolRequestPart }
  | { readonly request: ToolRequestPart; readonly response: ToolResponsePart };

/**
 * Checks the answers to the interrupted requests that a conversation ends with. Every entry must match one of them by
 * name and ref, a restart must have the original's input or name it as the one that it replaces, and every request must be
 * covered: else INVALID_ARGUMENT. A request that has its answer already is FAILED_PRECONDITION.
 */
export function checkAnswers(
  messages: readonly Message[],
  { respond: responses = [], restart: restarts = [] }: Resume,
): readonly Answer[] {
  const round = lastToolRound(messages) ?? { requests: [], answered: new Set() };
  const entries = new Map<string, ToolResponsePart | ToolRequestPart>();
  for (const entry of [...responses, ...restarts]) {
    const named = 'toolResponse' in entry ? entry.toolResponse : entry.toolRequest;
    const key = requestKey(named);
    const request = round.requests.find(({ toolRequest }) => requestKey(toolRequest) === key);
    if (round.answered.has(key) || (!request && wasAnswered(messages, key))) throw answered(named);
    if (!request) throw unasked(named, round.requests);
    if (!isInterrupted(request)) throw bad(`${nameOf(named)} was not interrupted`);
    if (entries.has(key)) throw bad(`There are two answers to ${nameOf(named)}`);
    if ('toolRequest' in entry) checkSeenInput(entry, request);
    entries.set(key, entry);
  }
  if (entries.size === 0) throw bad('The input has no answer');
  const open = round.requests.filter(
    ({ toolRequest }) => !round.answered.has(requestKey(toolRequest)),
  );
  return open.map((request) => {
    const entry = entries.get(requestKey(request.toolRequest));
    if (entry) return { request, entry };
    const response = keptResponse(request);
    if (response) return { request, response };
    throw bad(`There is no answer to ${nameOf(request.toolRequest)}; all of them must be answered`);
  });
}

/** The plan for each open request. Also refuses answers that do not fit the tools. */
export async function planResume(
  messages: readonly Message[],
  resume: Resume,
  tools: ReadonlyMap<string, Tool>,
): Promise<readonly ResumeStep[]> {
  const answers = checkAnswers(messages, resume);
  for (const { toolRequest } of resume.restart ?? []) {
    if (tools.has(toolRequest.name)) continue;
    throw bad(`${nameOf(toolRequest)} cannot be restarted: there is no such tool here`);
  }
  return Promise.all(answers.map((answer) => planStep(answer, tools)));
}

async function planStep(answer: Answer, tools: ReadonlyMap<string, Tool>): Promise<ResumeStep> {
  if ('response' in answer) return answer;
  const { request, entry } = answer;
  if ('toolRequest' in entry) return planRestart(request, entry, tools);
  const declined = entry.metadata?.declined;
  if (declined !== undefined && declined !== false) {
    if (entry.metadata?.expired === true) {
      const isFailure = request.metadata?.onExpiry === 'fail';
      return { request, response: closedResponse(request, 'expired'), isFailure };
    }
    return { request, response: declinedResponse(request, declined) };
  }
  const { output = null, content } = entry.toolResponse;
  const tool = tools.get(request.toolRequest.name);
  const checked = tool ? await tool.parseOutput(output) : output;
  // Metadata of the answer is left behind: what it says about errors and providers is ours to say.
  const { toolResponse } = respond(request.toolRequest, checked);
  return { request, response: { toolResponse: { ...toolResponse, ...defined({ content }) } } };
}

/** Fails the turn if one of the requests expired that must not be declined silently. */
export function checkExpiry(steps: readonly ResumeStep[]): void {
  const failed = steps.find((step) => 'isFailure' in step && step.isFailure === true);
  if (failed === undefined) return;
  const { toolRequest, metadata } = failed.request;
  throw new WaymarkError(
    'DEADLINE_EXCEEDED',
    `The interrupt of ${nameOf(toolRequest)} was not answered before ${metadata?.expiresAt ?? 'its deadline'}. Send another message to continue.`,
  );
}

async function planRestart(
  request: ToolRequestPart,
  { toolRequest, metadata = {} }: ToolRequestPart,
  tools: ReadonlyMap<string, Tool>,
): Promise<ResumeStep> {
  const resumed = metadata.resumed ?? true;
  const interrupted = request.metadata?.interrupt ?? true;
  await tools.get(toolRequest.name)?.checkResumed?.(resumed, interrupted);
  if (!(replacedInput in metadata)) return { request, resumed };
  // A bad edit must be refused before the turn begins, so that the interrupt stays open.
  await tools.get(toolRequest.name)?.parseInput(toolRequest.input ?? null);
  const edited = { ...request.toolRequest, input: toolRequest.input ?? null };
  return { request: { ...request, toolRequest: edited }, resumed, isEdited: true };
}

/** The caller must have seen the input that it approves or replaces. */
function checkSeenInput(
  { toolRequest, metadata = {} }: ToolRequestPart,
  original: ToolRequestPart,
): void {
  const seen = replacedInput in metadata ? metadata[replacedInput] : toolRequest.input;
  if (!jsonEqual(seen ?? null, original.toolRequest.input ?? null)) {
    throw bad(`The input of ${nameOf(toolRequest)} is not the one it was interrupted with`);
  }
}

// Looked for only when something is wrong, to distinguish a second click from a forged answer.
function wasAnswered(messages: readonly Message[], key: string): boolean {
  return messages.some(
    ({ role, content }) =>
      role === 'tool' &&
      content.some((part) => 'toolResponse' in part && requestKey(part.toolResponse) === key),
  );
}

function nameOf({ name, ref }: Pick<ToolRequest, 'name' | 'ref'>): string {
  return ref === undefined ? `tool "${name}"` : `tool "${name}" (ref "${ref}")`;
}

function bad(problem: string): WaymarkError {
  return invalid(
    `${problem}. \`resume\` takes one answer for each interrupted request of the latest model message.`,
  );
}

function unasked(
  named: Pick<ToolRequest, 'name' | 'ref'>,
  requests: readonly ToolRequestPart[],
): WaymarkError {
  const { name, ref } = named;
  const same = requests.filter(({ toolRequest }) => toolRequest.name === name);
  if (ref !== undefined || same.length === 0)
    return bad(`The latest model message did not ask for ${nameOf(named)}`);
  const refs = same.flatMap(({ toolRequest }) => toolRequest.ref ?? []);
  return bad(
    `The answer to tool "${name}" has no \`ref\`. Copy it from the request (${refs.map((own) => `"${own}"`).join(', ')}), or answer with the methods of \`output.interrupts\``,
  );
}

function answered(named: Pick<ToolRequest, 'name' | 'ref'>): WaymarkError {
  return failedPrecondition(
    `The interrupt of ${nameOf(named)} has already been answered. Fork the session to try another answer.`,
  );
}

/** Why open requests are closed without an answer. */
type CloseReason = 'declined' | 'aborted' | 'expired';

const closings: Readonly<Record<CloseReason, readonly [status: Status, text: string]>> = {
  declined: ['CANCELLED', 'Not answered: the user declined and went on with the next message.'],
  aborted: ['ABORTED', 'Not finished: it was stopped. Whether it had an effect is unknown.'],
  expired: ['DEADLINE_EXCEEDED', 'Declined: there was no answer before the deadline.'],
};

/**
 * The tool message that closes the open requests at the end of a conversation, so that every provider takes it: finished
 * siblings with their result, the others as declined or aborted. `undefined` if nothing is open.
 */
export function closeToolRequests(
  messages: readonly Message[],
  reason: CloseReason,
): Message | undefined {
  const open = openToolRequests(messages);
  if (open.length === 0) return undefined;
  return toolMessage(
    open.map((request) => keptResponse(request) ?? closedResponse(request, reason)),
  );
}

/** The result that an interrupt's sibling has already come to, as its response. */
export function keptResponse(request: ToolRequestPart): ToolResponsePart | undefined {
  const { toolRequest, metadata } = request;
  if (!metadata || !('pendingOutput' in metadata)) return undefined;
  const { error, pendingOutput: output = null, pendingContent: content } = metadata;
  const response = respond(toolRequest, output, error === undefined ? undefined : { error });
  const attached = Array.isArray(content) ? content.filter(isJsonObject) : undefined;
  const toolResponse = { ...response.toolResponse, ...defined({ content: attached }) };
  return withRecord({ ...response, toolResponse }, recordOf(request));
}

/** The response to a request that is not going to be answered. */
export function closedResponse(
  { toolRequest }: ToolRequestPart,
  reason: CloseReason,
): ToolResponsePart {
  const [status, text] = closings[reason];
  return respond(toolRequest, text, { error: { status, reason } });
}

/** The response to a request that the user declined, with the reason for the model, if one was given. */
function declinedResponse({ toolRequest }: ToolRequestPart, reason: Json): ToolResponsePart {
  const because = typeof reason === 'string' && reason !== '' ? ` The reason: ${reason}` : '';
  return respond(toolRequest, `The user declined.${because}`, {
    error: { status: 'CANCELLED', reason: 'declined' },
  });
}

export function respond(
  { name, ref }: Pick<ToolRequest, 'name' | 'ref'>,
  output: NonNullable<ToolResponsePart['toolResponse']['output']> | null,
  metadata?: JsonObject,
): ToolResponsePart {
  return { toolResponse: { name, ...defined({ ref }), output }, ...defined({ metadata }) };
}
