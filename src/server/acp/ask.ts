import type {
  AgentContext,
  ClientCapabilities,
  CreateElicitationRequest,
  PermissionOption,
  SendRequestOptions,
  ToolCallUpdate,
} from '@agentclientprotocol/sdk';
import type { Agent } from '../../agent/contract/agent.ts';
import type { Interrupt, InterruptAnswer } from '../../api/interrupts.ts';
import { type JsonObject, toJson } from '../../core/json/json.ts';
import { askedBy, type Question, questionsOf } from '../http/question.ts';
import type { Updates } from './updates.ts';

export interface Asker {
  readonly client: AgentContext;
  readonly capabilities: ClientCapabilities;
  readonly sessionId: string;
  readonly agent: Agent;
  readonly updates: Updates;
  /** Tools that run without asking, until the client has left. */
  readonly allowed: Set<string>;
  /** Whether all tools do. */
  readonly allowsAll: boolean;
  readonly signal: AbortSignal;
}

/** The answer to a question: `undefined` if the user cancels, `'text'` if the client has no way to ask. */
export type Given = InterruptAnswer | 'text' | undefined;

const optionsFor = (tool: string): readonly PermissionOption[] => [
  { optionId: 'allow', name: 'Allow', kind: 'allow_once' },
  { optionId: 'always', name: `Allow all calls of ${tool} in this session`, kind: 'allow_always' },
  { optionId: 'reject', name: 'Reject', kind: 'reject_once' },
];

/** Asks the user about an interrupt, or about each one inside of a sub-agent. */
export async function askAbout(interrupt: Interrupt, asker: Asker): Promise<Given> {
  const { interrupts } = interrupt;
  if (interrupts.length > 0) {
    const answers = new Map<Interrupt, InterruptAnswer>();
    for (const inner of interrupts) {
      const given = await askAbout(inner, asker);
      if (given === undefined || given === 'text') return given;
      answers.set(inner, given);
    }
    return interrupt.resume((inner) => answers.get(inner) ?? inner.decline());
  }
  const [question] = await questionsOf(asker.agent, '', [interrupt]);
  if (question === undefined) return undefined;
  if (askedBy(interrupt, question.tool).kind !== 'approval') return await elicit(question, asker);
  return await permit(interrupt, asker);
}

async function permit(interrupt: Interrupt, asker: Asker): Promise<Given> {
  const { allowed, allowsAll, updates } = asker;
  const { toolName, request } = interrupt;
  if (allowsAll || allowed.has(toolName)) return interrupt.approve();
  const facts = await updates.factsOf(request.toolRequest, true);
  const toolCallId = updates.idOf(request.toolRequest);
  const said = interrupt.metadata;
  const question =
    typeof said === 'object' && said && 'question' in said ? said.question : undefined;
  const optionId = await choose(asker, {
    toolCallId,
    ...facts,
    ...(typeof question === 'string' && { title: question }),
    options: optionsFor(toolName),
  });
  if (optionId === undefined) return undefined;
  if (optionId === 'always') allowed.add(toolName);
  return optionId === 'reject' ? interrupt.decline() : interrupt.approve();
}

/** Lets the user choose one of several options; `undefined` if they cancel, or the client has left. */
export async function choose(
  { client, sessionId, signal }: Pick<Asker, 'client' | 'sessionId' | 'signal'>,
  { options, ...toolCall }: ToolCallUpdate & { readonly options: readonly PermissionOption[] },
): Promise<string | undefined> {
  const asked = { sessionId, toolCall: { ...toolCall, status: 'pending' as const } };
  const answer = await unlessStopped(signal, (limits) =>
    client.request('session/request_permission', { ...asked, options: [...options] }, limits),
  );
  if (answer?.outcome.outcome !== 'selected') return undefined;
  const { optionId: chosen } = answer.outcome;
  // A client may answer with anything; only what was offered counts.
  return options.find(({ optionId }) => optionId === chosen)?.optionId;
}

/** The answer to a request; `undefined` when the prompt is stopped, whether or not the client answers then. */
async function unlessStopped<Answer>(
  signal: AbortSignal,
  send: (limits: SendRequestOptions) => Promise<Answer>,
): Promise<Answer | undefined> {
  try {
    const answer = await send({ cancellationSignal: signal, stopWaitingOnCancel: true });
    return signal.aborted ? undefined : answer;
  } catch (error) {
    if (signal.aborted) return undefined;
    throw error;
  }
}

async function elicit(
  { interrupt, message, form, accept, decline }: Question,
  { client, capabilities, sessionId, updates, signal }: Asker,
): Promise<Given> {
  if (!capabilities.elicitation?.form) return 'text';
  const request = {
    mode: 'form',
    sessionId,
    toolCallId: updates.idOf(interrupt.request.toolRequest),
    message,
    requestedSchema: form.schema,
  } as CreateElicitationRequest;
  const answer = await unlessStopped(signal, (limits) =>
    client.request('elicitation/create', request, limits),
  );
  if (answer === undefined || answer.action === 'cancel') return undefined;
  if (answer.action !== 'accept') return decline('The user declined.');
  const content = 'content' in answer ? answer.content : {};
  const value = form.read(toJson(content ?? {}, 'The answer') as JsonObject);
  return value === undefined ? decline('The answer does not fit the form.') : accept(value);
}

/** The answer that a text gives to a question, for a client that has no forms; `undefined` if it does not fit. */
export async function answerByText(
  interrupt: Interrupt,
  agent: Agent,
  text: string,
): Promise<InterruptAnswer | undefined> {
  const [question] = await questionsOf(agent, '', [interrupt]);
  if (question === undefined) return undefined;
  const { form, accept } = question;
  const fields = Object.keys((form.schema.properties ?? {}) as JsonObject);
  const [only] = fields;
  const value = fields.length === 1 && only !== undefined ? form.read({ [only]: text }) : undefined;
  return value === undefined ? undefined : accept(value);
}
