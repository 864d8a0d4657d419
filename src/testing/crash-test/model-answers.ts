import { contentHash } from '../../core/json/hash.ts';
import type { Json } from '../../core/json/json.ts';
import type { CallProbe } from '../../generate/hooks.ts';
import type { ModelRequest, ModelResponse } from '../../generate/model.ts';
import { repliesInOrder } from '../scripted-model.ts';
import { masked, shownMessages } from './outcome.ts';

type Call = Parameters<CallProbe['model']>[0];
type Answer = { readonly response: ModelResponse } | { readonly error: unknown };

/** Answers for another process, as JSON. */
export interface StoredAnswers {
  readonly byRequest: readonly (readonly [string, readonly Answer[]])[];
  readonly byPlace: readonly (readonly [string, Answer])[];
}

/**
 * The answers of the models: all runs of a crash test get the same answer to the same request, so that a difference comes from the
 * crash, and a real model is called for each request once.
 */
export class ModelAnswers {
  #byRequest = new Map<string, readonly Answer[]>();
  /** By the number of answers in the conversation before it. */
  #byPlace = new Map<string, Answer>();
  #isFirstRun = true;

  get isFirstRun(): boolean {
    return this.#isFirstRun;
  }

  /** Takes over the answers of another process. */
  load({ byRequest, byPlace }: StoredAnswers): void {
    this.#byRequest = new Map(byRequest);
    this.#byPlace = new Map(byPlace);
    this.#isFirstRun = false;
  }

  toJSON(): StoredAnswers {
    return { byRequest: [...this.#byRequest], byPlace: [...this.#byPlace] };
  }

  endFirstRun(): void {
    this.#isFirstRun = false;
  }

  /** `asked` counts the equal requests of one process. */
  async call(
    { model, request, stream }: Call,
    run: () => Promise<ModelResponse>,
    asked: Map<string, number>,
  ): Promise<ModelResponse> {
    const key = keyOf(model.name, request);
    const times = asked.get(key) ?? 0;
    asked.set(key, times + 1);
    const known = this.#byRequest.get(key) ?? [];
    const place = `${model.name} ${request.messages.filter(({ role }) => role === 'model').length}`;
    let answer = this.#isFirstRun ? undefined : (known[times] ?? known.at(-1));
    // Its next reply would be that of a later call.
    if (!this.#isFirstRun && repliesInOrder(model)) answer ??= this.#byPlace.get(place);
    if (answer === undefined) {
      answer = await run().then(
        (response) => ({ response }),
        (error: unknown) => ({ error }),
      );
      this.#byRequest.set(key, [...known, answer]);
      if (!this.#byPlace.has(place)) this.#byPlace.set(place, answer);
    } else if ('response' in answer) await stream({ content: answer.response.message.content });
    if ('error' in answer) throw answer.error;
    return answer.response;
  }
}

function keyOf(model: string, { messages, tools, toolChoice }: ModelRequest): string {
  const names = tools.map(({ name }) => name);
  const asked = [model, shownMessages(messages), names, toolChoice ?? null];
  return contentHash(masked(asked as unknown as Json));
}
