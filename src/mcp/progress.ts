import type { Progress } from '@modelcontextprotocol/client';
import type { Clock } from '../core/time/clock.ts';
import { after } from '../core/time/timers.ts';
import type { ToolContext } from '../generate/tool/tool-context.ts';

const progressEveryMs = 100;

/** Streams the progress of a call, at most every 100 ms. The last report of a call is always streamed, at its end at the latest. */
export class ProgressStream {
  readonly #clock: Clock;
  readonly #context: ToolContext;
  #held: Progress | undefined;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, context: ToolContext) {
    this.#clock = clock;
    this.#context = context;
  }

  report(progress: Progress): void {
    this.#held = progress;
    if (this.#cancel === undefined) this.#show();
  }

  end(): void {
    this.#cancel?.();
    this.#show();
    this.#cancel?.();
  }

  #show(): void {
    this.#cancel = undefined;
    if (this.#held === undefined) return;
    const { progress, total, message } = this.#held;
    this.#held = undefined;
    this.#cancel = after(this.#clock, progressEveryMs, () => this.#show());
    void this.#context.stream({
      progress,
      ...(total !== undefined && { total }),
      ...(message !== undefined && { message }),
    });
  }
}
