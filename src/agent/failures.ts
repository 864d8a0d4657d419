import { originalOf } from '../core/error.ts';
import type { ErrorInfo, ErrorPhase } from './error-reports.ts';
import type { Invocation } from './invocation.ts';

/** Causes that are followed; chains may be circular. */
const mostCauses = 8;

// Made anew for each failure, so each stands for one that was reported, also where another agent throws it on.
const reportedOnce = new WeakSet<object>();

/** Notes that an error stands for a failure that was reported; only for errors that are made anew for each failure. */
export function markReported(error: object): void {
  reportedOnce.add(error);
}

/** Whether an error stands for a failure that was reported. */
export function isReported(error: unknown): boolean {
  return chainOf(error).some(isMarked);
}

/**
 * Reports what fails in an invocation, once: where it happens, and not again in the layers that the error passes on its
 * way out. An error object may be thrown many times, so what was reported is forgotten with the turn.
 */
export class Failures {
  readonly #invocation: Invocation;
  #reported: unknown[] = [];

  constructor(invocation: Invocation) {
    this.#invocation = invocation;
  }

  /** Reports an error that goes on to fail the turn. */
  report(error: unknown, phase: ErrorPhase, subject: Pick<ErrorInfo, 'model'> = {}): void {
    const original = originalOf(error);
    const isKnown = isReported(error) || this.#find(error) >= 0;
    if (original !== error && typeof error === 'object' && error !== null) markReported(error);
    if (isKnown) return;
    this.#reported.push(original);
    this.#tell(original, { ...subject, phase });
  }

  /** Reports the error of a tool, which ends there: the model reads it, and the turn continues. */
  reportTool(error: unknown, tool: string): void {
    const at = this.#find(error);
    if (at >= 0) this.#reported.splice(at, 1);
    else if (!isReported(error)) this.#tell(originalOf(error), { phase: 'tool', tool });
  }

  /** Begins a turn: nothing of it was reported. */
  clear(): void {
    if (this.#reported.length > 0) this.#reported = [];
  }

  #find(error: unknown): number {
    if (this.#reported.length === 0) return -1;
    const chain = chainOf(error);
    return this.#reported.findIndex((each) => chain.includes(each));
  }

  #tell(error: unknown, info: Pick<ErrorInfo, 'phase' | 'tool' | 'model'>): void {
    const { host, spec, sessionId, run, turnIndex } = this.#invocation;
    host.report(error, {
      ...info,
      agent: spec.name,
      sessionId,
      ...(run && { runId: run.runId }),
      ...(turnIndex >= 0 && { turnIndex }),
    });
  }
}

function isMarked(error: unknown): boolean {
  return typeof error === 'object' && error !== null && reportedOnce.has(error);
}

function chainOf(error: unknown): readonly unknown[] {
  const chain = [error];
  for (let last = error; last instanceof Error && chain.length < mostCauses; ) {
    if (last.cause === undefined) break;
    last = last.cause;
    chain.push(last);
  }
  return chain;
}
