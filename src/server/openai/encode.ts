import type { Interrupt } from '../../api/interrupts.ts';
import type { Part } from '../../protocol/message.ts';
import { textOf } from '../../protocol/messages.ts';
import type { Chunk, Output, Reset } from '../../protocol/turn.ts';
import type { OpenAiError } from './errors.ts';
import {
  callItem,
  type Item,
  type TextKind,
  textItem,
  textOfItem,
  textPart,
  texts,
  toCallId,
  toItemId,
} from './items.ts';
import {
  finalStatus,
  type RequestEcho,
  type ResponseObject,
  type ResponseProgress,
  toResponse,
} from './response.ts';

export type ResponseEvent = Readonly<Record<string, unknown>> & {
  readonly type: string;
  readonly sequence_number: number;
};

/** How a turn ended, with what its output alone does not tell. */
export interface TurnEnd {
  readonly output: Output;
  /** The tool calls that wait for the caller. */
  readonly interrupts: readonly Interrupt[];
  /** The signed state, for a client that holds it. */
  readonly heldState?: string | undefined;
}

interface EncoderOptions {
  readonly model: string;
  readonly echo: RequestEcho;
  /** The id of a response that leaves no snapshot. */
  readonly newId: () => string;
  /** Whether the caller can answer under the id of the response. */
  readonly isStored: boolean;
}

interface OpenText {
  readonly kind: TextKind;
  readonly id: string;
  readonly index: number;
  /** The index of its message in the turn. */
  readonly message: number;
  text: string;
}

/**
 * The chunks of one turn as the events of a response, numbered. The same chunks give the same numbers, so that a stream can be
 * continued after any of them.
 */
export class ResponseEncoder {
  readonly #options: EncoderOptions;
  #out: ResponseEvent[] = [];
  #sequence = 0;
  /** The snapshot that the turn leaves, once it has started. */
  snapshotId: string | undefined;
  /** Items of the answer as it stands. */
  #items: Item[] = [];
  /** The index of each item's message in the turn. */
  #places: number[] = [];
  #message = 0;
  /** How many items the stream has had, also those that a takeover has made invalid. */
  #sent = 0;
  #attempt = 1;
  /** How many items come before the last tool results, where a takeover continues. */
  #checkpoint = 0;
  #open: OpenText | undefined;

  /** The whole response, once it has ended. */
  response: ResponseObject | undefined;

  constructor(options: EncoderOptions) {
    this.#options = options;
  }

  /** `attempt` counts the processes that have worked on the turn. */
  chunk({ agent, turnStart, modelChunk, steered }: Chunk, attempt = 1): readonly ResponseEvent[] {
    if (attempt > this.#attempt) this.#startAttempt(attempt);
    // A sub-agent's text goes to its caller.
    if (agent !== undefined) return [];
    if (turnStart) this.#start(turnStart.snapshotId);
    this.#message = modelChunk?.index ?? this.#message;
    for (const part of modelChunk?.content ?? []) this.#part(part);
    // The model answers a message that was added with another one.
    if (steered) this.#close();
    return this.#take();
  }

  /** Another process has taken over the turn: messages from `index` on come again. */
  reset({ attempt, index }: Reset): readonly ResponseEvent[] {
    if (attempt > this.#attempt) this.#startAttempt(attempt, index);
    return this.#take();
  }

  // The last events of a process that died may be lost with it. Its clients have seen their numbers, so they are not used again.
  #startAttempt(attempt: number, index?: number): void {
    this.#attempt = attempt;
    this.#sequence = Math.max(this.#sequence, (attempt - 1) * numbersPerAttempt);
    this.#close('incomplete');
    const kept =
      index === undefined ? this.#checkpoint : this.#places.findIndex((at) => at >= index);
    this.#items = kept < 0 ? this.#items : this.#items.slice(0, kept);
    this.#places = this.#places.slice(0, this.#items.length);
  }

  end({ output, interrupts, heldState }: TurnEnd): readonly ResponseEvent[] {
    this.#start(output.snapshotId);
    const { message, finishReason, usage, error } = output;
    // An agent may answer without having streamed.
    const isSilent =
      this.#open === undefined && !this.#items.some(({ type }) => type === 'message');
    if (isSilent && message?.role === 'model') this.#write('message', textOf(message));
    const status = finalStatus(finishReason);
    this.#close(status === 'completed' ? 'completed' : 'incomplete');
    for (const interrupt of interrupts) this.#call(interrupt);
    if (heldState !== undefined) this.#holdState(heldState);
    this.response = this.#response({ status, usage, error, finishReason });
    this.#push(terminal[status] ?? 'response.completed', { response: this.response });
    return this.#take();
  }

  /**
   * A response whose events are no longer stored: each item in one piece. A client that had some of the events gets the whole
   * response as the next one.
   */
  tell(response: ResponseObject, after: number): readonly ResponseEvent[] {
    this.#sequence = after + 1;
    if (after < 0) {
      this.#start(undefined);
      for (const item of response.output) {
        if (item.type === 'function_call') this.#pushCall(item);
        else this.#write(item.type === 'reasoning' ? 'reasoning' : 'message', textOfItem(item));
        this.#close();
      }
    }
    this.#push(terminal[response.status] ?? 'response.completed', { response });
    return this.#take();
  }

  /** The event for a failure that left no response. */
  fail({ code, message, param }: OpenAiError): readonly ResponseEvent[] {
    this.#push('error', { code, message, param });
    return this.#take();
  }

  #part(part: Part): void {
    const text = textPart(part);
    if (text) this.#write(text.kind, text.text);
    else if ('toolRequest' in part || 'toolResponse' in part) this.#close();
    if ('toolResponse' in part && part.metadata?.partial !== true) {
      this.#checkpoint = this.#items.length;
    }
  }

  #start(snapshotId: string | undefined): void {
    if (this.snapshotId !== undefined) return;
    this.snapshotId = snapshotId ?? this.#options.newId();
    for (const type of ['response.created', 'response.in_progress']) {
      this.#push(type, { response: this.#response({ status: 'in_progress' }) });
    }
  }

  #response(progress: Omit<ResponseProgress, 'output'>): ResponseObject {
    const { model, echo } = this.#options;
    const subject = { snapshotId: this.snapshotId ?? '', model, echo };
    return toResponse(subject, { ...progress, output: [...this.#items] });
  }

  #write(kind: TextKind, delta: string): void {
    if (delta === '') return;
    this.#start(undefined);
    if (this.#open?.kind !== kind) this.#openText(kind);
    const open = this.#open;
    if (!open) return;
    open.text += delta;
    this.#pushText(open, 'delta', { delta });
  }

  #openText(kind: TextKind): void {
    this.#close();
    const open = {
      kind,
      id: this.#nextId(texts[kind].idPrefix),
      index: this.#sent++,
      message: this.#message,
      text: '',
    };
    this.#open = open;
    const item = textItem(kind, open.id, undefined, 'in_progress');
    this.#push('response.output_item.added', { output_index: open.index, item });
    this.#pushPart(open, 'added');
  }

  #close(status: 'completed' | 'incomplete' = 'completed'): void {
    const open = this.#open;
    if (!open) return;
    this.#open = undefined;
    this.#pushText(open, 'done', { text: open.text });
    this.#pushPart(open, 'done');
    const item = textItem(open.kind, open.id, open.text, status);
    this.#items.push(item);
    this.#places.push(open.message);
    this.#push('response.output_item.done', { output_index: open.index, item });
  }

  #pushText({ kind, id, index }: OpenText, what: 'delta' | 'done', fields: object): void {
    const { event, place, more } = texts[kind];
    this.#push(`${event}.${what}`, {
      item_id: id,
      output_index: index,
      ...place,
      ...more,
      ...fields,
    });
  }

  #pushPart({ kind, id, index, text }: OpenText, what: 'added' | 'done'): void {
    const { partEvent, place, toPart } = texts[kind];
    const part = toPart(text);
    this.#push(`${partEvent}.${what}`, { item_id: id, output_index: index, ...place, part });
  }

  #call(interrupt: Interrupt): void {
    const stored = this.#options.isStored ? this.snapshotId : undefined;
    const callId = toCallId(stored, interrupt);
    this.#pushCall(callItem(this.#nextId('fc'), callId, interrupt));
  }

  #pushCall(item: Item): void {
    const { id, name, arguments: args } = item;
    const index = this.#sent++;
    const place = { item_id: id, output_index: index };
    const added = { ...item, arguments: '', status: 'in_progress' };
    this.#push('response.output_item.added', { output_index: index, item: added });
    this.#push('response.function_call_arguments.delta', { ...place, delta: args });
    this.#push('response.function_call_arguments.done', { ...place, name, arguments: args });
    this.#items.push(item);
    this.#push('response.output_item.done', { output_index: index, item });
  }

  // Clients send items of this kind back unread, also those that know nothing of this server.
  #holdState(state: string): void {
    const index = this.#sent++;
    const id = this.#nextId('rs');
    const item = { id, type: 'reasoning', summary: [], encrypted_content: state };
    this.#items.push(item);
    this.#push('response.output_item.added', { output_index: index, item });
    this.#push('response.output_item.done', { output_index: index, item });
  }

  /** The id is that of the item in the stored response, unless the item comes a second time. */
  #nextId(kind: 'msg' | 'rs' | 'fc'): string {
    const place = this.#items.length;
    const again = this.#attempt > 1 ? `-${this.#attempt}` : '';
    return toItemId(kind, this.snapshotId ?? '', `${place}${again}`);
  }

  #push(type: string, fields: object): void {
    this.#out.push({ type, sequence_number: this.#sequence++, ...fields });
  }

  #take(): readonly ResponseEvent[] {
    const events = this.#out;
    this.#out = [];
    return events;
  }
}

/** Where the numbers of a second attempt begin. */
const numbersPerAttempt = 1_000_000;

// The protocol has no event for a cancelled response.
const terminal: Readonly<Record<string, string>> = {
  failed: 'response.failed',
  incomplete: 'response.incomplete',
  cancelled: 'response.incomplete',
};
