import type { Agent } from '../../agent/spec/agent.ts';
import { toResume } from '../../api/interrupts.ts';
import { abortError } from '../../core/async/signal.ts';
import { textOf } from '../../protocol/messages/text.ts';
import type { Chunk, Init, Input, Output } from '../../protocol/turn.ts';
import { ownerOf } from '../http/auth.ts';
import { toWireError } from '../http/error-response.ts';
import { fromAnswer, logFault } from '../http/fault.ts';
import { jsonResponse } from '../http/json-response.ts';
import { requestIdOf, underRequestId } from '../http/request-id.ts';
import type { OpenCall } from '../http/server-context.ts';
import { beginTurn } from '../stream/answer-turn.ts';
import type { FeedBatch } from '../stream/feed.ts';
import { sseEvent, sseHeaders, sseKeepAlive, wantsEvents } from '../stream/sse.ts';
import { acquireStreamSlot, type StreamFormat } from '../stream/stream-response.ts';
import type { ServedTurn } from '../stream/turn.ts';
import { type Fields, isHttpRefusal, McpError } from './errors.ts';
import { inputRequired, waitingResult } from './interrupted.ts';
import { resultMessage } from './json-rpc.ts';
import { canBeAsked, canFillForms, peerOf } from './legacy-session.ts';
import { inEra, type McpRequest, type McpServer, progressTokenOf } from './mcp-server.ts';
import { openToolCall } from './parse-call.ts';
import { type Question, questionsOf } from './questions.ts';
import { errorResult, toolResult } from './result.ts';

/** `tools/call`: a turn of an agent, streamed where the client takes a stream. */
export async function answerToolCall(mcp: McpServer, request: McpRequest): Promise<Response> {
  const { era, id, c } = request;
  try {
    const call = await openToolCall(mcp, request);
    if ('result' in call) return respond(mcp, request, call.result);
    const slot = acquireStreamSlot(mcp.serverContext, c);
    try {
      const isStream = wantsEvents(c);
      const toolCall = new RunningCall(mcp, request, { ...call, reader: slot.signal, isStream });
      const messages = toolCall.run(call.init, underRequestId(call.input, requestIdOf(c)));
      if (isStream) return slot.respond(messages, format);
      let last: Fields = {};
      for await (const batch of messages) last = batch.at(-1) ?? last;
      slot.leave();
      return jsonResponse(last);
    } catch (error) {
      slot.leave();
      throw error;
    }
  } catch (error) {
    if (error instanceof McpError || isHttpRefusal(error)) throw error;
    logFault(mcp.serverContext, error, c.get('logged'));
    return jsonResponse(resultMessage(id, inEra(mcp, era, errorResult(toWireError(error)))));
  }
}

function respond(mcp: McpServer, { id, era }: McpRequest, result: Fields): Response {
  return jsonResponse(resultMessage(id, inEra(mcp, era, result)));
}

const format: StreamFormat<Fields> = {
  encode: (message) => sseEvent({ event: 'message', data: JSON.stringify(message) }),
  keepAlive: sseKeepAlive,
  headers: sseHeaders,
};

interface RunningCallOptions extends OpenCall {
  readonly reader: AbortSignal;
  readonly isStream: boolean;
}

/** One tool call: a turn, and in the 2025 revisions also the questions and turns that follow from it. */
class RunningCall {
  readonly #mcp: McpServer;
  readonly #request: McpRequest;
  readonly #call: RunningCallOptions;
  readonly #progressToken: ReturnType<typeof progressTokenOf>;
  #progress = 0;
  #snapshotId: string | undefined;
  #isCancelled = false;

  constructor(mcp: McpServer, request: McpRequest, call: RunningCallOptions) {
    this.#mcp = mcp;
    this.#request = request;
    this.#call = call;
    this.#progressToken = progressTokenOf(request);
  }

  /** The messages to the client, up to the response. The turn begins at once, so that a refusal is thrown here. */
  run(init: Init, input: Input): AsyncGenerator<readonly Fields[]> {
    return this.#messages(this.#begin(init, input));
  }

  async *#messages(first: ServedTurn): AsyncGenerator<readonly Fields[]> {
    const { id, c, era } = this.#request;
    const forget = this.#mcp.dialogs.enter(peerOf(c), id, () => this.#cancel());
    let result: Fields;
    try {
      result = yield* this.#answer(first);
    } catch (error) {
      logFault(this.#mcp.serverContext, error, c.get('logged'));
      result = errorResult(toWireError(error));
    } finally {
      forget();
    }
    yield [resultMessage(id, inEra(this.#mcp, era, result))];
  }

  async *#answer(first: ServedTurn): AsyncGenerator<readonly Fields[], Fields> {
    const { agent } = this.#call;
    for (let turn = first; ; ) {
      const output = yield* this.#follow(turn.events);
      const { sessionId, snapshotId, finishReason } = output;
      if (finishReason !== 'interrupted' || snapshotId === undefined) {
        return toolResult(agent, output, { links: this.#request.era.version >= '2025-06-18' });
      }
      const answered = yield* this.#ask(agent, { sessionId, snapshotId });
      if ('result' in answered) return answered.result;
      turn = this.#begin({ sessionId, ifHead: snapshotId }, { resume: answered.resume });
    }
  }

  #begin(init: Init, input: Input): ServedTurn {
    const { agent, caller, reader } = this.#call;
    return beginTurn(this.#mcp.serverContext, this.#request.c, {
      agent,
      caller,
      init,
      input,
      reader,
      resumable: false,
      // Since 2026-07-28 a client cancels by closing the stream; before, a closed stream says nothing.
      ...(this.#request.era.kind === 'modern' && { stopWithReader: true }),
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
      logFault(this.#mcp.serverContext, error, this.#request.c.get('logged'));
    });
  }

  /** Gets the answers to an interrupt, or the result that leaves it open. */
  async *#ask(
    agent: Agent,
    place: { readonly sessionId: string; readonly snapshotId: string },
  ): AsyncGenerator<
    readonly Fields[],
    { readonly result: Fields } | { readonly resume: ReturnType<typeof toResume> }
  > {
    const { era, c } = this.#request;
    const { caller, options, isStream } = this.#call;
    const { snapshotId } = place;
    const interrupts = (await agent.getSnapshot({ snapshotId }, options))?.interrupts ?? [];
    const questions = await questionsOf(agent, snapshotId, interrupts);
    const waiting = { result: waitingResult(place, interrupts) };
    if (era.kind === 'modern') {
      if (!canFillForms(era.capabilities)) return waiting;
      return { result: inputRequired(this.#mcp, { agent, ...place, questions }, caller) };
    }
    if (!isStream || !canBeAsked(peerOf(c))) return waiting;
    const answers = [];
    for (const question of questions) {
      const answer = yield* this.#askOne(question);
      if (answer === undefined) return waiting;
      answers.push(answer);
    }
    return { resume: toResume(answers) };
  }

  async *#askOne({
    params,
    answer,
  }: Question): AsyncGenerator<readonly Fields[], ReturnType<Question['answer']>> {
    const { id, reply } = this.#mcp.dialogs.ask(peerOf(this.#request.c), this.#call.reader);
    yield [{ jsonrpc: '2.0', id, method: 'elicitation/create', params }];
    const { result } = await reply;
    return result === undefined ? undefined : answer(result);
  }
}
