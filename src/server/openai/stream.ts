import type { Agent, CallOptions } from '../../agent/contract/agent.ts';
import { interruptsAtEnd } from '../../api/interrupts.ts';
import { abortError } from '../../core/async/signal.ts';
import { assertNever, WaymarkError } from '../../core/error.ts';
import { parseEventId } from '../../protocol/ids.ts';
import type { Output } from '../../protocol/turn.ts';
import { fromAnswer } from '../http/log.ts';
import type { FeedBatch, FeedEvent } from '../stream/feed.ts';
import { sseFormat, sseJson } from '../stream/stream-response.ts';
import { ResponseEncoder, type ResponseEvent, type TurnEnd } from './encode.ts';
import { toOpenAiError } from './errors.ts';
import { toResponseId } from './items.ts';
import { fromState } from './openai-server.ts';
import type { RequestEcho, ResponseObject } from './response.ts';

export const responseFormat = sseFormat<ResponseEvent>((event) => sseJson(event, event.type));

export interface EncodedTurn {
  readonly agent: Agent;
  readonly options: CallOptions;
  readonly echo: RequestEcho;
  readonly isHeld: boolean;
}

export class ResponseStream {
  readonly #turn: EncodedTurn;
  readonly #encoder: ResponseEncoder;

  constructor(newId: () => string, turn: EncodedTurn) {
    this.#turn = turn;
    this.#encoder = new ResponseEncoder({
      model: turn.agent.name,
      echo: turn.echo,
      newId,
      isStored: !turn.isHeld,
    });
  }

  /** As they come; those up to `after` are left out. */
  async *events(
    batches: AsyncIterable<FeedBatch>,
    after = -1,
  ): AsyncGenerator<readonly ResponseEvent[]> {
    for await (const batch of batches) {
      const events: ResponseEvent[] = [];
      for (const event of batch) events.push(...(await this.#encode(event)));
      const news = events.filter(({ sequence_number: at }) => at > after);
      if (news.length > 0) yield news;
    }
  }

  /** A response whose events are no longer stored. */
  async *told(response: ResponseObject, after: number): AsyncGenerator<readonly ResponseEvent[]> {
    yield this.#encoder.tell(response, after);
  }

  /** The response that they lead to. */
  async whole(batches: AsyncIterable<FeedBatch>, reader: AbortSignal): Promise<ResponseObject> {
    for await (const batch of batches) {
      for (const event of batch) {
        if (event.type === 'error') throw fromAnswer(event.error);
        await this.#encode(event);
        if (this.#encoder.response) return this.#encoder.response;
      }
    }
    // The client has left, or the server shuts down before the turn ends: name the response that it will be.
    const { status, message, details } = abortError(reader);
    const { snapshotId } = this.#encoder;
    const named = snapshotId && { retryAfter: 1, responseId: toResponseId(snapshotId) };
    throw new WaymarkError(status, message, { details: named ?? details });
  }

  async #encode(event: FeedEvent): Promise<readonly ResponseEvent[]> {
    switch (event.type) {
      case 'chunk':
        return this.#encoder.chunk(event.chunk, attemptOf(event.id));
      case 'reset':
        return this.#encoder.reset(event);
      case 'output':
        return this.#encoder.end(await this.#endOf(event.output));
      case 'error':
        return this.#encoder.fail(toOpenAiError(event.error));
      default:
        return assertNever(event);
    }
  }

  async #endOf(output: Output): Promise<TurnEnd> {
    const { agent, options, isHeld } = this.#turn;
    const waits = output.finishReason === 'interrupted';
    if (isHeld) {
      const { state } = output;
      const interrupts = waits ? interruptsAtEnd(state?.messages ?? []) : [];
      return { output, interrupts, heldState: state && fromState(state) };
    }
    const { snapshotId = this.#encoder.snapshotId } = output;
    if (!waits || snapshotId === undefined) return { output, interrupts: [] };
    const snapshot = await agent.getSnapshot({ snapshotId }, options);
    return { output, interrupts: snapshot?.interrupts ?? [] };
  }
}

function attemptOf(eventId: string | undefined): number | undefined {
  return eventId === undefined ? undefined : parseEventId(eventId).attempt;
}
