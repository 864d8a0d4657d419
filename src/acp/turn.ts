import type { SessionUpdate, ToolCallContent, ToolCallUpdate } from '@agentclientprotocol/sdk';
import type { AgentSession, Responder, TurnInfo, TurnResult } from '../agent/contract/handler.ts';
import {
  canonicalJson,
  isJsonObject,
  type Json,
  type JsonObject,
  jsonLength,
  tryJson,
} from '../core/json/json.ts';
import type { Message, Part, ToolRequestPart, ToolResponsePart } from '../protocol/message.ts';
import { joinText } from '../protocol/messages.ts';
import type { FinishReason, Input, Usage } from '../protocol/turn.ts';
import type { Decision, Link, Question } from './link.ts';
import { maxProof, plainText } from './messages.ts';

/** The longest input or result of one tool call that is kept, as JSON. */
const maxToolLength = 256 * 1024;

/** The program's session, as the turns need it; the custom state of the agent. */
export type AcpState = {
  /** The program, as it names itself. */
  readonly agent: string;
  /** The id of the program's session. */
  readonly sessionId: string;
  /** The session that began it: a fork begins another one. */
  readonly createdIn: string;
  /**
   * How this turn reached the state before it: `new`: there was none; `kept`: the program was still running; `loaded`: the program loaded its
   * session; `retold`: it got a new session, with the conversation so far as text.
   */
  readonly connection: 'new' | 'kept' | 'loaded' | 'retold';
  /** Identifies the last turn that the program's session has seen. */
  readonly tip: string;
  /** The number of prompts that the session has got. */
  readonly prompts: number;
  /** The last of them, without white space. */
  readonly last: string;
  /** The end of what it had said since the last prompt when it asked the user, without white space; absent if it does not ask. */
  readonly asked?: string;
  /** The plan, if the program has told one. */
  readonly plan?: Json;
  /** Tokens in the context of the program's model, and its size. */
  readonly context?: { readonly used: number; readonly size: number };
  /** The cost of the program's session so far, by currency. */
  readonly cost?: { readonly amount: number; readonly currency: string };
};

interface Call {
  readonly title: string;
  readonly name: string;
  readonly input: Json;
  readonly about: JsonObject;
  readonly content: readonly ToolCallContent[];
  readonly output: Json | undefined;
}

/** One turn of a program: its updates as chunks and messages, its questions as interrupts. */
export class AcpTurn {
  readonly #session: AgentSession<Json | undefined>;
  readonly #respond: Responder<Json | undefined>;
  readonly #link: Link;
  readonly #info: TurnInfo;
  readonly #calls = new Map<string, Call>();
  #content: Part[] = [];
  #added = 0;
  #usage: Usage | undefined;

  constructor(
    session: AgentSession<Json | undefined>,
    respond: Responder<Json | undefined>,
    link: Link,
    info: TurnInfo,
  ) {
    this.#session = session;
    this.#respond = respond;
    this.#link = link;
    this.#info = info;
  }

  /** Takes what the program says until its turn ends or it asks something. */
  async run(): Promise<TurnResult> {
    for (;;) {
      const event = await this.#link.next(this.#info.signal);
      if (event.kind === 'update') await this.#update(event.update);
      else if (event.kind === 'end') {
        this.#flush();
        return this.#result(finishReasons[event.response?.stopReason] ?? 'other');
      } else {
        const open = [event, ...this.#link.takeQuestions()].filter(
          (each) => !this.#isDecided(each),
        );
        if (open.length > 0) return await this.#interrupt(open);
      }
    }
  }

  /** Gives the program the answers of the user, and adds them to the conversation. */
  answer({ resume }: Input): void {
    const answers = [...(resume?.restart ?? []), ...(resume?.respond ?? [])];
    const responses = answers.map((each): ToolResponsePart => {
      const { name, ref } = 'toolRequest' in each ? each.toolRequest : each.toolResponse;
      const question = this.#link.open.get(ref ?? '');
      const asked = this.#asked(ref);
      const decision = decisionOf(each, asked);
      const { allow, value } = decision;
      if (question) answerQuestion(question, decision);
      else this.#link.decided.push({ key: keyOf(asked?.toolRequest.input ?? null), ...decision });
      this.#link.open.delete(ref ?? '');
      const output = value ?? { allowed: allow };
      return { toolResponse: { name, ...(ref !== undefined && { ref }), output } };
    });
    this.#add({ role: 'tool', content: responses });
  }

  /** The decision of the user, as text for a program that has lost its question. */
  decisions({ resume }: Input): string {
    const answers = [...(resume?.restart ?? []), ...(resume?.respond ?? [])];
    const lines = answers.map((each) => {
      const { ref } = 'toolRequest' in each ? each.toolRequest : each.toolResponse;
      const asked = this.#asked(ref);
      const { allow, value } = decisionOf(each, asked);
      const { title } = Object(asked?.toolRequest.input);
      const said = value === undefined ? '' : ` ${JSON.stringify(value)}`;
      return `${String(title ?? 'Your question')}: ${allow ? 'yes' : 'no'}${said}`;
    });
    return `You asked before you were interrupted. The answers of the user:\n${lines.join('\n')}\nContinue with your task.`;
  }

  /** A question that was asked in an earlier turn. */
  #asked(ref: string | undefined): ToolRequestPart | undefined {
    for (const { content } of this.#session.messages.toReversed()) {
      const part = content.find((each) => 'toolRequest' in each && each.toolRequest.ref === ref);
      if (part && 'toolRequest' in part) return part;
    }
    return undefined;
  }

  #isDecided(question: Question): boolean {
    if (question.kind !== 'permission') return false;
    const key = keyOf(inputOf(question.request.toolCall));
    const at = this.#link.decided.findIndex((each) => each.key === key);
    const [decided] = at < 0 ? [] : this.#link.decided.splice(at, 1);
    if (decided) answerQuestion(question, decided);
    return decided !== undefined;
  }

  async #interrupt(questions: readonly Question[]): Promise<TurnResult> {
    const requests = questions.map((question): ToolRequestPart => {
      const part = toRequest(question, this.#link.open.size);
      this.#link.open.set(part.toolRequest.ref ?? '', question);
      return part;
    });
    await this.#say(...requests);
    this.#content.push(...requests);
    this.#flush();
    this.#note({ asked: plainText(this.#link.said).slice(-maxProof) });
    return this.#result('interrupted');
  }

  async #update(update: SessionUpdate): Promise<void> {
    switch (update.sessionUpdate) {
      case 'agent_message_chunk':
      case 'agent_thought_chunk': {
        const isThought = update.sessionUpdate === 'agent_thought_chunk';
        if (!isThought) this.#link.said.push(update.content);
        const part = toPart(update.content, isThought);
        if (part === undefined) return;
        if (!join(this.#content, part)) this.#content.push(part);
        return await this.#say(part);
      }
      case 'tool_call':
      case 'tool_call_update':
        return await this.#toolCall(update);
      case 'plan': {
        const plan = tryJson(update.entries) ?? [];
        this.#note({ plan });
        return await this.#respond.status({ plan });
      }
      case 'usage_update':
        return this.#spent(update);
      default:
        return;
    }
  }

  async #toolCall(update: ToolCallUpdate): Promise<void> {
    const { toolCallId: ref, status } = update;
    const before = this.#calls.get(ref);
    const call = merge(before, update);
    this.#calls.set(ref, call);
    const request = {
      toolRequest: { name: call.name, ref, input: call.input },
      metadata: call.about,
    };
    if (!before) await this.#say(request);
    if (status !== 'completed' && status !== 'failed') return;
    this.#calls.delete(ref);
    const output = bounded(call.output ?? textOf(call.content));
    const response: ToolResponsePart = {
      toolResponse: { name: call.name, ref, output },
      ...(status === 'failed' && { metadata: { error: { status: 'UNKNOWN' } } }),
    };
    this.#content.push(request);
    this.#flush();
    await this.#respond.modelChunk({ role: 'tool', index: this.#added, content: [response] });
    this.#add({ role: 'tool', content: [response] });
  }

  #spent({ used, size, cost }: Extract<SessionUpdate, { sessionUpdate: 'usage_update' }>): void {
    const before = Object(this.#session.custom).cost as AcpState['cost'];
    this.#note({
      context: { used, size },
      ...(cost && { cost: { amount: cost.amount, currency: cost.currency } }),
    });
    if (!cost || !/^[A-Z]{3}$/.test(cost.currency)) return;
    const spent = cost.amount - (before?.currency === cost.currency ? before.amount : 0);
    // It reports the sum of its session, and a broken one may report less than before.
    if (!(spent > 0)) return;
    const sum = (this.#usage?.cost?.[cost.currency] ?? 0) + Math.round(spent * 1_000_000);
    this.#usage = { cost: { [cost.currency]: sum } };
  }

  #note(change: Partial<AcpState>): void {
    this.#session.setCustom({ ...Object(this.#session.custom), ...change });
  }

  async #say(...content: Part[]): Promise<void> {
    await this.#respond.modelChunk({ index: this.#added, content });
  }

  #flush(): void {
    if (this.#content.length > 0) this.#add({ role: 'model', content: this.#content });
    this.#content = [];
  }

  #add(message: Message): void {
    this.#session.addMessages(message);
    this.#added++;
  }

  #result(finishReason: FinishReason): TurnResult {
    return { finishReason, ...(this.#usage && { usage: this.#usage }) };
  }
}

const finishReasons = {
  end_turn: 'stop',
  max_tokens: 'length',
  max_turn_requests: 'length',
  refusal: 'blocked',
  cancelled: 'other',
} as const;

function toRequest(question: Question, count: number): ToolRequestPart {
  if (question.kind === 'form') {
    const { message } = question.request;
    const schema = tryJson(
      'requestedSchema' in question.request ? question.request.requestedSchema : {},
    );
    const input = { title: message };
    return {
      toolRequest: { name: 'elicitation', ref: `${crypto.randomUUID()}:${count}`, input },
      // As the tools of MCP servers ask.
      metadata: { interrupt: { elicitation: { mode: 'form' }, message, schema: schema ?? {} } },
    };
  }
  const { toolCall, options } = question.request;
  const input = inputOf(toolCall);
  const name = toolCall.name ?? toolCall.kind ?? 'tool';
  return {
    toolRequest: {
      name,
      ref: `${toolCall.toolCallId}:permission:${crypto.randomUUID().slice(0, 8)}`,
      input,
    },
    metadata: {
      interrupt: {
        approval: { tool: name, input },
        question: toolCall.title ?? name,
        options: options.map(({ optionId, name: label, kind }) => ({
          optionId,
          name: label,
          kind,
        })),
      },
    },
  };
}

function inputOf({ title, rawInput, locations }: ToolCallUpdate): JsonObject {
  const input = bounded(tryJson(rawInput) ?? null);
  const paths = locations?.map(({ path }) => path) ?? [];
  return {
    ...(isJsonObject(input) ? input : input === null ? {} : { input }),
    ...(title && { title }),
    ...(paths.length > 0 && { paths }),
  };
}

/** Identifies a question that is asked again. */
function keyOf(input: Json): string {
  return canonicalJson(input);
}

/** The decision about a question. Only a clear yes to a permission is a yes. */
function decisionOf(answer: ToolRequestPart | ToolResponsePart, asked?: ToolRequestPart): Decision {
  const isApproval = 'toolRequest' in answer;
  if (!isApproval && answer.metadata?.declined !== undefined) return { allow: false };
  const given = isApproval ? (answer.metadata?.resumed ?? true) : answer.toolResponse.output;
  if (given === true) return { allow: true };
  if (given === false) return { allow: false };
  const { options } = Object(asked?.metadata?.interrupt);
  const said = isJsonObject(given) ? given : {};
  if (!Array.isArray(options)) {
    return isApproval && said.approved === false ? { allow: false } : { allow: true, value: given };
  }
  if (said.optionId === undefined) {
    const allow = isApproval ? said.approved !== false : said.approved === true;
    return { allow, value: given };
  }
  const option = options.find((each) => Object(each).optionId === said.optionId);
  return { allow: String(Object(option).kind).startsWith('allow_'), value: given };
}

function answerQuestion(question: Question, { allow, value }: Decision): void {
  if (question.kind === 'form') {
    const { action, content = value } = isJsonObject(value) ? value : {};
    if (!allow || action === 'decline') question.answer({ action: 'decline' });
    else if (action === 'cancel') question.answer({ action: 'cancel' });
    else question.answer({ action: 'accept', content: (content ?? {}) as never });
    return;
  }
  const { options } = question.request;
  const kinds = allow ? ['allow_once', 'allow_always'] : ['reject_once', 'reject_always'];
  const named = isJsonObject(value)
    ? options.find((each) => each.optionId === value.optionId && kinds.includes(each.kind))
    : undefined;
  const fitting = kinds.map((kind) => options.find((each) => each.kind === kind)).find(Boolean);
  const chosen = named ?? fitting;
  question.answer({
    outcome: chosen ? { outcome: 'selected', optionId: chosen.optionId } : { outcome: 'cancelled' },
  });
}

function merge(before: Call | undefined, update: ToolCallUpdate): Call {
  const { title, name, kind, locations, content, rawInput, rawOutput } = update;
  const about = {
    ...before?.about,
    ...(kind && { kind }),
    ...(title && { title: title.slice(0, 1_000) }),
    ...(locations && { locations: bounded(tryJson(locations) ?? []) }),
  };
  const given = tryJson(rawInput);
  const shown = title ?? before?.title ?? '';
  return {
    title: shown,
    name: name ?? before?.name ?? kind ?? 'tool',
    input:
      given === undefined || given === null ? (before?.input ?? { title: shown }) : bounded(given),
    about,
    content: content ?? before?.content ?? [],
    output: tryJson(rawOutput) ?? before?.output,
  };
}

function textOf(content: readonly ToolCallContent[]): Json {
  return content
    .map((each) => {
      if (each.type === 'diff') return `Changed ${each.path}`;
      return each.type === 'content' && each.content.type === 'text' ? each.content.text : '';
    })
    .join('\n');
}

function bounded(value: Json): Json {
  if (jsonLength(value, maxToolLength) <= maxToolLength) return value;
  return `${JSON.stringify(value).slice(0, maxToolLength)}…`;
}

function toPart(
  content: Extract<SessionUpdate, { sessionUpdate: 'agent_message_chunk' }>['content'],
  isThought: boolean,
): Part | undefined {
  if (content.type === 'text') {
    return isThought ? { reasoning: content.text } : { text: content.text };
  }
  if (content.type === 'resource_link') return { resource: { uri: content.uri } };
  if (content.type === 'resource') return { resource: { uri: content.resource.uri } };
  const { mimeType: contentType, data } = content;
  return { media: { url: `data:${contentType};base64,${data}`, contentType } };
}

function join(content: Part[], part: Part): boolean {
  const last = content.at(-1);
  if (last && 'reasoning' in last && 'reasoning' in part) {
    content[content.length - 1] = { reasoning: last.reasoning + part.reasoning };
    return true;
  }
  return joinText(content, part);
}
