import type { RequestOptions } from '../../api/types.ts';
import { failedPrecondition, hasStatus, invalid, WaymarkError } from '../../core/error.ts';
import { formerContentHash, sha256 } from '../../core/json/hash.ts';
import { isJsonObject, type Json } from '../../core/json/json.ts';
import { autoPrefix, isName, maxIdLength } from '../../protocol/ids.ts';
import type { Message } from '../../protocol/message.ts';
import { withoutProviderMetadata } from '../../protocol/messages.ts';
import type { State } from '../../protocol/state.ts';
import type { Input, Resume } from '../../protocol/turn.ts';
import type { RequestMark, RequestRecord, Scope } from '../../store/contract/store.ts';
import type { AgentSpec } from '../contract/spec.ts';

const maxQueued = 1_000;

export interface QueuedInput {
  readonly input: Input;
  /** Tells the sender whether it was accepted; absent if the sender does not wait. */
  readonly answer?: {
    readonly accept: () => void;
    readonly refuse: (error: unknown) => void;
  };
}

/** The inputs of an invocation that have not been worked on yet. */
export class Inbox {
  readonly #queue: QueuedInput[] = [];
  #closed = false;
  #held = false;
  #waiting: (() => void) | undefined;

  get closed(): boolean {
    return this.#closed;
  }

  /** The queued inputs, oldest first. */
  get queued(): readonly Input[] {
    return this.#queue.map(({ input }) => input);
  }

  push(input: Input): void {
    this.#push({ input });
  }

  /** Queues an input. Resolves when its turn has started or it was dropped; rejects when it was refused. */
  offer(input: Input): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#push({ input, answer: { accept: resolve, refuse: reject } });
    return promise;
  }

  #push(queued: QueuedInput): void {
    if (this.#closed || this.#held) throw closedError();
    if (this.#queue.length >= maxQueued) {
      throw new WaymarkError(
        'RESOURCE_EXHAUSTED',
        `${maxQueued} inputs are queued already. Wait for a turn to end before sending more.`,
      );
    }
    this.#queue.push(queued);
    this.#wake();
  }

  /** Refuses new inputs until the returned function is called. Throws if it would have refused these inputs, too. */
  hold(inputs: number): () => void {
    if (this.#held || (this.#closed && inputs > 0)) throw closedError();
    this.#held = true;
    return () => {
      this.#held = false;
    };
  }

  /** Queues these inputs, which have been accepted already, and closes. */
  end(inputs: readonly Input[]): void {
    // The run has accepted all queued inputs.
    for (const { answer } of this.#queue) answer?.accept();
    this.#queue.push(...inputs.map((input) => ({ input })));
    this.close();
  }

  /** Takes no more inputs. Queued inputs are still run. */
  close(): void {
    this.#closed = true;
    this.#wake();
  }

  /** Closes when the signal aborts; the returned function ends that. */
  closeWith(signal: AbortSignal): () => void {
    const close = (): void => this.close();
    signal.addEventListener('abort', close);
    return () => signal.removeEventListener('abort', close);
  }

  /** Puts an input back, to be run next. */
  unshift(input: Input): void {
    this.#queue.unshift({ input });
    this.#wake();
  }

  clear(): void {
    for (const { answer } of this.#queue.splice(0)) answer?.accept();
    this.close();
  }

  get hasNext(): boolean {
    return this.#queue.length > 0;
  }

  /** Resolves when an input may have come, or no more inputs come. */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  take(): QueuedInput | undefined {
    return this.#queue.shift();
  }

  #wake(): void {
    this.#waiting?.();
    this.#waiting = undefined;
  }
}

export function closedError(): WaymarkError {
  return failedPrecondition('The connection is closed and takes no more inputs. Open a new one.');
}

export function underRequest(input: Input, { requestId }: RequestOptions = {}): Input {
  return requestId === undefined ? input : { ...input, requestId };
}

/**
 * The input without an automatic request id if the agent cannot store ids. Clients of this package generate ids with the prefix
 * `auto-`, which the user did not ask for.
 */
export function withoutAutoId(spec: AgentSpec, input: Input): Input {
  if (input.requestId?.startsWith(autoPrefix) !== true || keepsRequests(spec)) return input;
  const { requestId: _, ...rest } = input;
  return rest;
}

function keepsRequests(spec: Pick<AgentSpec, 'store'>): boolean {
  return spec.store?.runs !== undefined;
}

/** Refuses an invalid request id, or any id if the agent's store cannot keep ids. */
export function checkRequestId(spec: AgentSpec, { requestId }: Input): void {
  if (requestId === undefined) return;
  if (!isName(requestId)) {
    throw invalid(
      `The request id is not valid. Expected 1 to ${maxIdLength} characters of well-formed text without NUL.`,
    );
  }
  if (keepsRequests(spec)) return;
  throw failedPrecondition(
    spec.store === undefined
      ? `Agent "${spec.name}" has no store, so it cannot tell whether a request was sent before. Pass \`store\` to waymark() or to the agent, or leave out the request id.`
      : `The store of agent "${spec.name}" has no claims, so it cannot keep request ids. Leave out the request id, or use a store that has claims, such as sqliteStore.`,
  );
}

/** The keys that a run is claimed with, one for each input with a request id. */
export function requestMarks(scope: Scope, inputs: readonly Input[]): readonly RequestMark[] {
  const marks: RequestMark[] = [];
  for (const input of inputs) {
    if (input.requestId === undefined) continue;
    const { requestId, ...rest } = input;
    marks.push({ key: requestKey(scope, requestId), digest: formerContentHash(rest as Json) });
  }
  return marks;
}

/** The store's key of a request id, which is unique per owner and agent. */
export function requestKey({ owner, agent }: Scope, requestId: string): string {
  return sha256(JSON.stringify([owner ?? null, agent, requestId]));
}

/** The earlier run with the same request id, if a claim was refused because of it. */
export function knownRequest(error: unknown): RequestRecord | undefined {
  if (!hasStatus(error, 'ALREADY_EXISTS')) return undefined;
  const { details } = error;
  const request = isJsonObject(details) ? details.request : undefined;
  if (!isJsonObject(request)) return undefined;
  const { runId, sessionId } = request;
  if (typeof runId !== 'string' || typeof sessionId !== 'string') return undefined;
  return { runId, sessionId };
}

/** A client's message without provider options: only server code may set them. */
export function withoutOptions(message: Message): Message {
  const content = message.content.map(withoutProviderMetadata);
  const isClean = content.every((part, at) => part === message.content[at]);
  return withoutProviderMetadata(isClean ? message : { ...message, content });
}

/** A client's answers without the mark that they come from a deadline: only a worker may set it. */
export function withoutExpiry(resume: Resume): Resume {
  const { respond } = resume;
  if (respond === undefined) return resume;
  return {
    ...resume,
    respond: respond.map((part) => {
      if (part.metadata?.expired === undefined) return part;
      const { expired: _, ...metadata } = part.metadata;
      return { ...part, metadata };
    }),
  };
}

/**
 * An unsigned client-held state without provider options. This drops the provider's signatures of its reasoning, too: in an
 * unsigned state they could be forged.
 */
export function withoutProviderOptions(state: State): State {
  if (state.messages === undefined) return state;
  return { ...state, messages: state.messages.map(withoutOptions) };
}

/**
 * Refuses input that an agent over a prompt does not take. It takes a user's message, answers to interrupts, or a message behind answers that need no tool to
 * run.
 */
export function checkPromptInput({ message, resume, detach }: Input): void {
  if (message !== undefined && resume?.restart !== undefined) {
    throw invalid(
      'A message can follow answers of `resume.respond` only. Send it after the tools of `resume.restart` have run.',
    );
  }
  if (resume !== undefined && message === undefined) return;
  if (message === undefined) {
    // A bare detach sends nothing: it leaves what is queued to the background.
    if (detach === true) return;
    throw invalid('The input has neither `message` nor `resume`. Pass one of them.');
  }
  if (message.role !== 'user') {
    throw invalid(
      `A message of role "${message.role}" cannot start a turn. Expected a user message.`,
    );
  }
  if (message.content.length === 0) throw invalid('The message is empty.');
  if (message.content.some((part) => 'toolRequest' in part || 'toolResponse' in part)) {
    throw invalid('A message cannot carry tool parts. Answer an interrupt with `resume`.');
  }
}

/** A custom agent decides for itself, but takes no empty input. */
export function checkCustomInput({ message, resume, detach }: Input): void {
  if (message === undefined && resume === undefined && detach !== true) {
    throw invalid('The input has neither `message` nor `resume`. Pass one of them.');
  }
}
