import { originalOf } from '../../core/error.ts';
import type { ErrorInfo, ErrorPhase } from '../spec/error-reports.ts';
import { causesOf, isReported, markReported } from '../spec/reported-errors.ts';
import { adviseFrozen } from './frozen-advice.ts';

/** What failed; the invocation adds where. */
type FailureInfo = Pick<ErrorInfo, 'phase' | 'tool' | 'toolSource' | 'model'>;

/**
 * Reports each failure of an invocation once, where it happens, and not again in the layers that the error passes on its
 * way out. The same error object may be thrown again, so the next turn starts without any.
 */
export class Failures {
  readonly #tell: (error: unknown, info: FailureInfo) => void;
  #reported: unknown[] = [];

  constructor(tell: (error: unknown, info: FailureInfo) => void) {
    this.#tell = tell;
  }

  /** Reports an error that fails the turn. */
  report(error: unknown, phase: ErrorPhase, subject: Pick<ErrorInfo, 'model'> = {}): void {
    const original = originalOf(error);
    adviseFrozen(original);
    const isKnown = isReported(error) || this.#find(error) >= 0;
    if (original !== error && typeof error === 'object' && error !== null) markReported(error);
    if (isKnown) return;
    this.#reported.push(original);
    this.#tell(original, { ...subject, phase });
  }

  /** Reports the error of a tool or tool source, which ends there: the model reads it, and the turn continues. */
  reportTool(error: unknown, subject: Pick<ErrorInfo, 'tool' | 'toolSource'>): void {
    adviseFrozen(error);
    const at = this.#find(error);
    if (at >= 0) this.#reported.splice(at, 1);
    else if (!isReported(error)) this.#tell(originalOf(error), { ...subject, phase: 'tool' });
  }

  /** Call at the start of a turn. */
  clear(): void {
    if (this.#reported.length > 0) this.#reported = [];
  }

  #find(error: unknown): number {
    if (this.#reported.length === 0) return -1;
    const chain = causesOf(error);
    return this.#reported.findIndex((each) => chain.includes(each));
  }
}
