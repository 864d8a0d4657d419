import * as v from 'valibot';
import type { Agent } from '../../agent/contract/agent.ts';
import { toResume } from '../../api/interrupts.ts';
import { abortError } from '../../core/async/signal.ts';
import { invalid } from '../../core/error.ts';
import { textOf } from '../../protocol/messages.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { Chunk, Init, Input, Output, Resume } from '../../protocol/turn.ts';
import { found, jsonResponse, short, toWireError } from '../http/answer.ts';
import { ownerOf } from '../http/auth.ts';
import { type Fields, isHttpRefusal, RpcError, resultMessage } from '../http/json-rpc.ts';
import { fromAnswer } from '../http/log.ts';
import { questionsOf } from '../http/question.ts';
import { logRequestFault, type OpenCall, openAgentCall } from '../http/server-context.ts';
import type { FeedBatch } from '../stream/feed.ts';
import { beginTurn, requestIdOf, underRequestId } from '../stream/turn.ts';
import {
  type Asked,
  canFillForms,
  inEra,
  type McpRequest,
  peerOf,
  progressTokenOf,
} from './mcp-server.ts';
import { codes } from './messages.ts';
import { answerOf, askUser, canAsk, inputRequired, waitingResult } from './questions.ts';
import { errorResult, toolResult } from './result.ts';
import { type Messages, type StreamIo, streamAnswer } from './stream-answer.ts';
import { isTaskCall, startTask } from './tasks.ts';
import { toolArguments } from './tools.ts';

/** `tools/call`: a turn of an agent. A refusal is a result, so that the calling model can read it. */
export async function answerToolCall(request: McpRequest): Promise<Response> {
  const { id, c } = request;
  const respond = (result: Fields): Response =>
    jsonResponse(resultMessage(id, inEra(request, result)));
  try {
    const call = await openToolCall(request);
    if ('result' in call) return respond(call.result);
    const input = underRequestId(call.input, requestIdOf(c));
    if (isTaskCall(request, call)) return respond(await startTask(request, { ...call, input }));
    return await streamAnswer(request, (io) =>
      new RunningCall(request, { ...call, ...io }).run(call.init, input),
    );
  } catch (error) {
    if (error instanceof RpcError || isHttpRefusal(error)) throw error;
    logRequestFault(c, error);
    return respond(errorResult(toWireError(error)));
  }
}

/** One tool call: a turn, and in the 2025 revisions also the questions and turns that follow from it. */
class RunningCall {
  readonly #request: McpRequest;
  readonly #call: OpenCall & StreamIo;
  readonly #progressToken: ReturnType<typeof progressTokenOf>;
  #progress = 0;
  #snapshotId: string | undefined;
  #isCancelled = false;

  constructor(request: McpRequest, call: OpenCall & StreamIo) {
    this.#request = request;
    this.#call = call;
    this.#progressToken = progressTokenOf(request);
  }

  /** Begins the turn at once, so that a refusal is thrown here. */
  run(init: Init, input: Input): Messages {
    return this.#messages(this.#begin(init, input));
  }

  async *#messages(first: AsyncGenerator<FeedBatch>): Messages {
    const { id, c, dialogs } = this.#request;
    const forget = dialogs.enter(peerOf(c), id, () => this.#cancel());
    try {
      return yield* this.#answer(first);
    } catch (error) {
      logRequestFault(c, error);
      return errorResult(toWireError(error));
    } finally {
      forget();
    }
  }

  async *#answer(first: AsyncGenerator<FeedBatch>): Messages {
    for (let turn = first; ; ) {
      const output = yield* this.#follow(turn);
      const { sessionId, snapshotId, finishReason } = output;
      if (finishReason !== 'interrupted' || snapshotId === undefined) {
        const links = this.#request.era.version >= '2025-06-18';
        return toolResult(this.#call.agent, output, { links });
      }
      const asked = yield* this.#ask({ sessionId, snapshotId });
      if ('result' in asked) return asked.result;
      turn = this.#begin({ sessionId, ifHead: snapshotId }, { resume: asked.resume });
    }
  }

  #begin(init: Init, input: Input): AsyncGenerator<FeedBatch> {
    const { agent, caller, reader } = this.#call;
    return beginTurn(this.#request.c, {
      agent,
      caller,
      init,
      input,
      reader,
      resumable: false,
      // Since 2026-07-28 a client cancels by closing the stream; before, a closed stream says nothing.
      stopWithReader: this.#request.era.kind === 'modern' || undefined,
    });
  }

  async *#follow(events: AsyncIterable<FeedBatch>): AsyncGenerator<readonly Fields[], Output> {
    for await (const batch of events) {
      let text = '';
      for (const event of batch) {
        if (event.type === 'output') return event.output;
        if (event.type === 'error') throw fromAnswer(event.error);
        if (event.type === 'chunk') text += this.#see(event.chunk);
      }
      if (text !== '' && this.#progressToken !== undefined) yield [this.#notify(text)];
    }
    throw abortError(this.#call.reader);
  }

  /** The text of a chunk that is the agent's own. */
  #see({ agent, turnStart, modelChunk }: Chunk): string {
    if (agent !== undefined) return '';
    if (turnStart?.snapshotId !== undefined) {
      this.#snapshotId = turnStart.snapshotId;
      if (this.#isCancelled) this.#cancel();
    }
    return modelChunk && modelChunk.role !== 'tool' ? textOf(modelChunk) : '';
  }

  /** Progress counts characters, because it has to grow with each notification. */
  #notify(message: string): Fields {
    this.#progress += message.length;
    const params = { progressToken: this.#progressToken, progress: this.#progress, message };
    return { jsonrpc: '2.0', method: 'notifications/progress', params };
  }

  /** Stops the turn, which keeps its partial answer. */
  #cancel(): void {
    this.#isCancelled = true;
    const { agent, caller } = this.#call;
    if (this.#snapshotId === undefined) return;
    agent.abort(this.#snapshotId, ownerOf(caller)).catch((error: unknown) => {
      logRequestFault(this.#request.c, error);
    });
  }

  /** Gets the answers to an interrupt, or the result that leaves it open. */
  async *#ask(place: {
    readonly sessionId: string;
    readonly snapshotId: string;
  }): AsyncGenerator<readonly Fields[], { readonly result: Fields } | { readonly resume: Resume }> {
    const { era } = this.#request;
    const { agent, options } = this.#call;
    const { snapshotId } = place;
    const interrupts = (await agent.getSnapshot({ snapshotId }, options))?.interrupts ?? [];
    const questions = await questionsOf(agent, snapshotId, interrupts);
    if (era.kind === 'modern' && canFillForms(era.capabilities)) {
      return { result: inputRequired(this.#request, { agent, ...place, questions }) };
    }
    const answers = canAsk(this.#request, this.#call)
      ? yield* askUser(this.#request, questions, this.#call)
      : undefined;
    if (answers) return { resume: toResume(answers) };
    return { result: waitingResult(place, interrupts) };
  }
}

const object = v.record(v.string(), v.unknown());

const callParams = v.object({
  name: v.string(),
  arguments: v.optional(object, {}),
  requestState: v.optional(v.string()),
  inputResponses: v.optional(object, {}),
});

/** The outcome of reading a call: a turn, or a result that needs none. */
type ToolCall = OpenCall &
  ({ readonly init: Init; readonly input: Input } | { readonly result: Fields });

/** Reads a tool call, and asks whether its caller may make it. */
async function openToolCall(request: McpRequest): Promise<ToolCall> {
  const parsed = v.safeParse(callParams, request.params);
  if (!parsed.success) {
    throw new RpcError(codes.invalidParams, 'Expected params with a name and arguments.');
  }
  const { name, requestState, inputResponses } = parsed.output;
  const agent = request.offered().get(name);
  if (!agent) throw new RpcError(codes.invalidParams, `There is no tool ${short(name)}.`);
  if (requestState !== undefined && request.era.kind === 'modern') {
    const asked = request.states.open(requestState, request.c.get('caller').principal);
    return await openAnswer(request, agent, asked, inputResponses);
  }
  const args = parseShape(toolArguments, parsed.output.arguments, 'input of the tool');
  const { message, sessionId, snapshotId } = args;
  const init = { sessionId, snapshotId };
  const subject = { agent, operation: 'runTurn', ...init } as const;
  const open = await openAgentCall(request.c, subject);
  return { ...open, init, input: { message: { role: 'user', content: [{ text: message }] } } };
}

async function openAnswer(
  request: McpRequest,
  agent: Agent,
  { agent: name, sessionId, snapshotId }: Asked,
  inputResponses: Fields,
): Promise<ToolCall> {
  if (name !== agent.name) {
    throw invalid('This request state belongs to another tool.');
  }
  const subject = { agent, operation: 'runTurn', sessionId, snapshotId } as const;
  const open = await openAgentCall(request.c, subject);
  const stored = await agent.getSnapshot({ snapshotId }, open.options);
  const snapshot = found(stored, 'snapshot', snapshotId);
  const questions = await questionsOf(agent, snapshotId, snapshot.interrupts);
  if (questions.some(({ key }) => !Object.hasOwn(inputResponses, key))) {
    const asked = { agent, sessionId, snapshotId, questions };
    return { ...open, result: inputRequired(request, asked) };
  }
  const answers = questions.flatMap((each) => answerOf(each, inputResponses[each.key]) ?? []);
  if (answers.length < questions.length) {
    return { ...open, result: waitingResult({ sessionId, snapshotId }, snapshot.interrupts) };
  }
  return { ...open, init: { sessionId, ifHead: snapshotId }, input: { resume: toResume(answers) } };
}
