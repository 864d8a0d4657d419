import { WaymarkError } from '../core/error.ts';
import type { Chunk, Init, Output } from '../protocol/turn.ts';

/** The position of a connection: the running turn, the queued inputs, and where a new socket would resume. */
export class ResumeCursor {
  /** The id of the last event that arrived. */
  after: string | undefined;
  /** Where a new socket starts. */
  init: Init;
  #turn: { readonly snapshotId: string | undefined } | undefined;
  /** Inputs that were sent and whose turn has not started. */
  #waiting = 0;
  #serverManaged = false;
  readonly #snapshotIds: string[] = [];

  constructor(init: Init) {
    this.init = init;
  }

  /** Whether a new socket would find what this one left. A client-managed state is known only at the end. */
  get canGoOn(): boolean {
    return !this.#turn && this.#waiting === 0 && this.#serverManaged;
  }

  /** The running turn, if its events can be followed. */
  get running(): { readonly snapshotId: string; readonly after: string } | undefined {
    const snapshotId = this.#turn?.snapshotId;
    if (snapshotId === undefined || this.after === undefined) return undefined;
    return { snapshotId, after: this.after };
  }

  queued(inputs: 1 | -1): void {
    this.#waiting += inputs;
  }

  note({ agent, turnStart, turnEnd, snapshotCreated }: Chunk, id: string | undefined): void {
    this.after = id ?? this.after;
    if (agent !== undefined) return; // a sub-agent's
    if (snapshotCreated) this.#snapshotIds.push(snapshotCreated);
    if (turnStart) {
      const { sessionId, snapshotId } = turnStart;
      this.#turn = { snapshotId };
      this.#waiting = Math.max(0, this.#waiting - 1);
      this.#serverManaged = snapshotId !== undefined;
      if (this.#serverManaged) this.init = { sessionId };
    }
    if (turnEnd) {
      this.#turn = undefined;
      const { snapshotId } = turnEnd;
      if (snapshotId !== undefined) this.init = { ...this.init, snapshotId };
    }
  }

  /** Notes that a followed turn has ended, whether or not it was followed to its end. */
  ended({ sessionId, snapshotId }: Output): void {
    this.#turn = undefined;
    this.init = snapshotId === undefined ? { sessionId } : { sessionId, snapshotId };
  }

  /** The output with the snapshots that were made on earlier sockets. */
  complete(output: Output): Output {
    const { snapshotIds } = output;
    if (!snapshotIds) return output;
    const earlier = this.#snapshotIds.filter((id) => !snapshotIds.includes(id));
    return earlier.length === 0 ? output : { ...output, snapshotIds: [...earlier, ...snapshotIds] };
  }
}

/** Frames that wait for the server's answer, by their ref. */
export class PendingFrames {
  readonly #waiting = new Map<number, PromiseWithResolvers<void>>();
  #last = 0;

  expect(): { readonly ref: number; readonly answered: Promise<void> } {
    const answer = Promise.withResolvers<void>();
    const ref = ++this.#last;
    this.#waiting.set(ref, answer);
    return { ref, answered: answer.promise };
  }

  /** Accepts a frame, or refuses it with the error. */
  answer(ref: string | number, error?: WaymarkError): void {
    const waiter = this.#waiting.get(Number(ref));
    this.#waiting.delete(Number(ref));
    if (error) waiter?.reject(error);
    else waiter?.resolve();
  }

  /** Answers all waiting frames. */
  end(error: WaymarkError | undefined): void {
    for (const ref of [...this.#waiting.keys()]) this.answer(ref, error);
  }
}

export function cutOff(): WaymarkError {
  return new WaymarkError(
    'UNAVAILABLE',
    'The connection was cut, and what was sent last may or may not have been taken. Look at the session first.',
  );
}
