import { interruptsOf } from '../../api/interrupts.ts';
import { assertNever } from '../../core/error.ts';
import type { Part, ToolRequestPart, ToolResponsePart } from '../../protocol/message.ts';
import type { Chunk, FinishReason, ModelChunk, Output, Reset } from '../../protocol/turn.ts';
import { toolCallId } from '../http/turns-of.ts';
import type { FeedEvent } from '../stream/feed.ts';
import { isDeclined, type UiChunk } from './shapes.ts';

const uiFinishReason: Record<FinishReason, string> = {
  stop: 'stop',
  length: 'length',
  blocked: 'content-filter',
  interrupted: 'tool-calls',
  other: 'other',
  unknown: 'other',
  aborted: 'other',
  detached: 'other',
  failed: 'error',
};

/** Turns the events of one turn into the chunks that `useChat` reads, in the order that it insists on. */
export class UiEncoder {
  #out: UiChunk[] = [];
  #started = false;
  #inStep = false;
  // The text or reasoning that is being written.
  #open: { readonly kind: 'text' | 'reasoning'; readonly id: string } | undefined;
  #count = 0;
  // The tools have answered: what the model says next is another step.
  #toolsDone = false;
  readonly #asked = new Set<string>();
  #askedInStep: string[] = [];
  // The index of the model's message that the step shows.
  #message: number | undefined;
  readonly #continues: boolean;

  /** @param continues The turn answers interrupts of the page's last message, and its chunks are added to that message. */
  constructor(continues: boolean) {
    this.#continues = continues;
  }

  encode(event: FeedEvent): readonly UiChunk[] {
    this.#out = [];
    switch (event.type) {
      case 'chunk':
        this.#chunk(event.chunk);
        break;
      case 'reset':
        this.#reset(event);
        break;
      case 'output':
        this.#output(event.output);
        break;
      case 'error':
        this.#start();
        this.#push({ type: 'error', errorText: event.error.message });
        this.#finish('failed', {});
        break;
      default:
        assertNever(event);
    }
    return this.#out;
  }

  #chunk({ agent, turnStart, modelChunk, status, artifact, customPatch }: Chunk): void {
    // A sub-agent's text goes to its caller, not to the page.
    if (agent !== undefined) return;
    if (turnStart) this.#start(turnStart);
    if (modelChunk) this.#says(modelChunk);
    if (status !== undefined) this.#push({ type: 'data-status', data: status, transient: true });
    if (customPatch) this.#push({ type: 'data-customPatch', data: customPatch, transient: true });
    if (artifact) {
      this.#push({ type: 'data-artifact', id: artifact.name, data: artifact });
    }
  }

  #says({ role, index, content }: ModelChunk): void {
    if (role !== 'tool' && index !== this.#message) {
      // Each message of the model is a step: a takeover may take back the last one alone.
      if (this.#inStep) this.#endStep();
      this.#message = index;
    }
    for (const part of content) this.#part(part);
  }

  // Only the last step can have messages that no longer stand: the one before has ended with a checkpoint.
  #reset({ index = 0 }: Reset): void {
    if (!this.#inStep || index > (this.#message ?? 0)) return;
    this.#open = undefined;
    this.#toolsDone = false;
    for (const id of this.#askedInStep.splice(0)) this.#asked.delete(id);
    this.#push({ type: 'reset-step' });
  }

  #part(part: Part): void {
    if ('text' in part) this.#write('text', part.text);
    else if ('reasoning' in part) this.#write('reasoning', part.reasoning);
    else if ('toolRequest' in part) this.#request(part);
    else if ('toolResponse' in part) this.#response(part);
    else if ('media' in part) {
      const { url, contentType = 'application/octet-stream' } = part.media;
      this.#beginStep();
      this.#close();
      this.#push({ type: 'file', url, mediaType: contentType });
    } else if ('data' in part) this.#push({ type: 'data-part', data: part.data });
  }

  #write(kind: 'text' | 'reasoning', delta: string): void {
    this.#beginStep();
    if (this.#open?.kind !== kind) {
      this.#close();
      this.#open = { kind, id: `${kind}-${this.#count++}` };
      this.#push({ type: `${kind}-start`, id: this.#open.id });
    }
    this.#push({ type: `${kind}-delta`, id: this.#open.id, delta });
  }

  #request({ toolRequest }: ToolRequestPart): void {
    const id = toolCallId(toolRequest);
    if (this.#asked.has(id)) return;
    this.#beginStep();
    this.#asked.add(id);
    this.#askedInStep.push(id);
    this.#close();
    const { name, input = {} } = toolRequest;
    this.#push({ type: 'tool-input-available', toolCallId: id, toolName: name, input });
  }

  #response(part: ToolResponsePart): void {
    const { toolResponse, metadata } = part;
    const id = toolCallId(toolResponse);
    const { name, output = null } = toolResponse;
    // The answer to an interrupt of an earlier turn. A page that was loaded since does not have the request in this message.
    if (!this.#asked.has(id) && !this.#continues) this.#request({ toolRequest: { name, ref: id } });
    this.#start();
    const preliminary = metadata?.partial === true;
    if (isDeclined(part)) {
      this.#push({ type: 'tool-output-denied', toolCallId: id });
    } else if (metadata?.error !== undefined) {
      this.#push({ type: 'tool-output-error', toolCallId: id, errorText: String(output) });
    } else {
      const flag = { preliminary: preliminary || undefined };
      this.#push({ type: 'tool-output-available', toolCallId: id, output, ...flag });
    }
    if (!preliminary) this.#toolsDone = true;
  }

  #output(output: Output): void {
    this.#start(output);
    const { message, finishReason = 'unknown', error, snapshotId, usage } = output;
    // Interrupted requests wait for the page to answer them.
    for (const { request } of interruptsOf(message)) {
      this.#request(request);
      const id = toolCallId(request.toolRequest);
      const descriptor = request.metadata?.interrupt;
      this.#push({
        type: 'tool-approval-request',
        approvalId: id,
        toolCallId: id,
        approvalDescriptor: descriptor === true ? undefined : descriptor,
      });
    }
    if (error) this.#push({ type: 'error', errorText: error.message });
    if (finishReason === 'aborted') {
      this.#endStep();
      this.#push({ type: 'abort' });
    }
    this.#finish(finishReason, { snapshotId, usage });
  }

  // The message has the id of its snapshot, so that the page can restore it. One that is continued keeps its id: with another
  // id, the page would show it twice.
  #start({ sessionId, snapshotId }: Partial<NonNullable<Chunk['turnStart']>> = {}): void {
    if (this.#started) return;
    this.#started = true;
    this.#push({
      type: 'start',
      messageId: this.#continues ? undefined : snapshotId,
      messageMetadata: sessionId === undefined ? undefined : { sessionId },
    });
  }

  #finish(reason: FinishReason, messageMetadata: object): void {
    this.#endStep();
    this.#push({ type: 'finish', finishReason: uiFinishReason[reason], messageMetadata });
  }

  #beginStep(): void {
    this.#start();
    if (this.#toolsDone) this.#endStep();
    if (this.#inStep) return;
    this.#inStep = true;
    this.#askedInStep = [];
    this.#push({ type: 'start-step' });
  }

  #endStep(): void {
    this.#close();
    this.#toolsDone = false;
    if (!this.#inStep) return;
    this.#inStep = false;
    this.#push({ type: 'finish-step' });
  }

  #close(): void {
    if (this.#open) this.#push({ type: `${this.#open.kind}-end`, id: this.#open.id });
    this.#open = undefined;
  }

  #push(chunk: UiChunk): void {
    this.#out.push(chunk);
  }
}
