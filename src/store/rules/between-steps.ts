import { letOthersRun } from '../../core/platform.ts';

/** Kinds of garbage collections, as Node reports them. */
export const beginOfMarking = 8;
export const fullCollection = 4;

// As they are when this is loaded: tests may replace them later, and nothing here waits for a moved clock.
const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;

/** How long it waits for the end of a marking at most. Usually it takes a tenth of a second. */
const longest = 500;
/** How long after the last step it listens. */
const idle = 1000;

/**
 * Knows whether V8 marks what is alive. It does so beside everything else, and takes for alive whatever is written meanwhile.
 * The full collection at the end then moves all of that, while turns wait.
 */
export class Marking {
  readonly #longest: number;
  #ended: PromiseWithResolvers<void> | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor({ longest }: { readonly longest: number }) {
    this.#longest = longest;
  }

  /** Takes note of a collection. */
  saw(kind: number | undefined): void {
    if (kind === fullCollection) this.#end();
    if (kind !== beginOfMarking || this.#ended !== undefined) return;
    this.#ended = Promise.withResolvers();
    // Someone waits for it, so it keeps the process alive.
    this.#timer = setTimeout(() => this.#end(), this.#longest);
  }

  /** Resolves when nothing is marked; `undefined`: nothing is. */
  over(): Promise<void> | undefined {
    return this.#ended?.promise;
  }

  #end(): void {
    clearTimeout(this.#timer);
    this.#ended?.resolve();
    this.#ended = undefined;
  }
}

const marking = new Marking({ longest });
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
  const timer = setInterval(() => {
    if (!isStepping) stop?.();
    isStepping = false;
  }, idle);
  timer.unref();
  stop = () => {
    clearInterval(timer);
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
