import { WaymarkError } from '../../core/error.ts';
import type { ServerContext } from '../http/server-context.ts';

/** Inputs that wait to be taken at most. */
const maxWaiting = 64;

/** The inputs of a connection whose turns have not ended. While there are any, they count as one running turn of their principal. */
export class WaitingInputs {
  readonly #serverContext: ServerContext;
  readonly #lengths: number[] = [];
  #release: () => void = () => {};

  constructor(serverContext: ServerContext) {
    this.#serverContext = serverContext;
  }

  get isEmpty(): boolean {
    return this.#lengths.length === 0;
  }

  /** Notes an input of that many characters, or refuses it. */
  add(length: number, principal: string | undefined): void {
    const characters = this.#lengths.reduce((sum, each) => sum + each, 0);
    const { limits } = this.#serverContext;
    if (this.#lengths.length >= maxWaiting || characters >= limits.bodyBytes) {
      throw new WaymarkError(
        'RESOURCE_EXHAUSTED',
        `${this.#lengths.length} inputs are waiting already. Send the next one when a turn has ended.`,
      );
    }
    if (this.isEmpty) this.#begin(principal);
    this.#lengths.push(length);
  }

  /** The turn of the first input has ended. */
  remove(): void {
    this.#lengths.shift();
    if (this.isEmpty) this.#release();
  }

  /** The work for all of them is over. */
  release(): void {
    this.#release();
  }

  #begin(principal: string | undefined): void {
    const giveBack = this.#serverContext.turns.take(principal);
    const working = Promise.withResolvers<void>();
    void this.#serverContext.lifetime.track(working.promise);
    this.#release = () => {
      giveBack();
      working.resolve();
    };
  }
}
