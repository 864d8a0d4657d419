import type { ElicitRequest, ElicitResult } from '@modelcontextprotocol/client';
import { isWaymarkError, WaymarkError } from '../core/error.ts';
import type { JsonObject } from '../core/json/json.ts';
import { keyOf, type Question, questionOf, toElicitResult } from './questions.ts';

/** A call during which a server of 2025 may ask. */
export interface AskedCall {
  readonly answers: Readonly<Record<string, JsonObject>>;
  /** Called with a question that has no answer yet: the call is cancelled, and made again with the answer. */
  onQuestion(question: Question, key: string): void;
}

/**
 * The questions of a server of 2025 on one connection. They do not say which call they belong to, and a cancelled call may
 * still ask. A question must never reach the user of another call, so it is only passed on if a single call can have asked it.
 */
export class LegacyQuestions {
  readonly #calls = new Map<AskedCall, number>();
  /** Called when the server asks something: from then on its calls run one after the other. */
  readonly #onAsked: () => void;
  /** Takes the connection out of use: a call on it may still ask, but there is no listener. */
  readonly #retire: () => void;
  #hasLostCalls = false;

  constructor(events: { readonly onAsked: () => void; readonly retire: () => void }) {
    this.#onAsked = events.onAsked;
    this.#retire = events.retire;
  }

  /** Makes a call. */
  async during<T>(call: AskedCall, fn: () => Promise<T>): Promise<T> {
    this.#calls.set(call, 0);
    try {
      return await fn();
    } catch (error) {
      if (!isAnswered(error)) this.#hasLostCalls = true;
      throw error;
    } finally {
      this.#calls.delete(call);
    }
  }

  /** Answers a question of the server with what the user said, or passes it on to the call. */
  async ask(params: ElicitRequest['params']): Promise<ElicitResult> {
    this.#onAsked();
    const [call, ...others] = this.#calls.keys();
    if (call === undefined || others.length > 0 || this.#hasLostCalls) {
      if (this.#hasLostCalls) this.#retire();
      throw new WaymarkError(
        'FAILED_PRECONDITION',
        'Several calls are running, so it is not known whose question this is. Call the tool again.',
      );
    }
    const question = questionOf(params);
    const count = this.#calls.get(call) ?? 0;
    this.#calls.set(call, count + 1);
    const key = keyOf(question, count);
    const answer = call.answers[key];
    if (answer) return toElicitResult(answer);
    call.onQuestion(question, key);
    this.#retire();
    return { action: 'cancel' };
  }
}

// A call that the server has refused is over.
function isAnswered(error: unknown): boolean {
  const cause = isWaymarkError(error) ? error.cause : undefined;
  return typeof (cause as { readonly code?: unknown } | undefined)?.code === 'number';
}
