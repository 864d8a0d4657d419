import { letOthersRun } from '../../core/platform.ts';
import { after } from '../../core/time/after.ts';
import { type Clock, systemClock } from '../../core/time/clock.ts';

/** Kinds of garbage collections, as Node reports them. */
const beginOfMarking = 8;
const fullCollection = 4;

/** How long it waits for the end of a marking at most. Usually it takes a tenth of a second. */
const longest = 500;
/** How long after the last step it listens. */
const idle = 1000;

/**
 * Knows whether V8 marks what is alive. It does so beside everything else, and takes for alive whatever is written meanwhile.
 * The full collection at the end then moves all of that, while turns wait.
 */
export class Marking {
  readonly #clock: Clock;
  #ended: PromiseWithResolvers<void> | undefined;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes note of a collection. */
  saw(kind: number | undefined): void {
    if (kind === fullCollection) this.#end();
    if (kind !== beginOfMarking || this.#ended !== undefined) return;
    this.#ended = Promise.withResolvers();
    this.#cancel = after(this.#clock, longest, () => this.#end(), { keepAlive: true });
  }

  /** Resolves when nothing is marked; `undefined`: nothing is. */
  over(): Promise<void> | undefined {
    return this.#ended?.promise;
  }

  #end(): void {
    this.#cancel?.();
    this.#ended?.resolve();
    this.#ended = undefined;
  }
}

const marking = new Marking(systemClock);
let isStepping = false;
let stop: (() => void) | undefined;

/** Listens to V8 as long as there are steps. */
function listen(): void {
  isStepping = true;
  if (stop !== undefined || !isReported()) return;
  const observer = new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) marking.saw(kindOf(entry));
  });
  observer.observe({ entryTypes: ['gc'] });
  const stopTimer = systemClock.every(idle, () => {
    if (!isStepping) stop?.();
    isStepping = false;
  });
  stop = () => {
    stopTimer();
    observer.disconnect();
    stop = undefined;
  };
}

/** Only Node says when V8 collects garbage. */
function isReported(): boolean {
  const types = globalThis.PerformanceObserver?.supportedEntryTypes ?? [];
  return types.includes('gc');
}

/** The kind of a collection. */
export function kindOf(entry: PerformanceEntry): number | undefined {
  return (entry as { readonly detail?: { readonly kind?: number } }).detail?.kind;
}

/**
 * To be awaited between two steps of maintenance: turns run meanwhile. It takes longer while V8 marks what is alive, so that
 * the full collection which follows has less to move.
 */
export async function betweenSteps(): Promise<void> {
  listen();
  await letOthersRun();
  await marking.over();
}
