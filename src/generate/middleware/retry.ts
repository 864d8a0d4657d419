import { isWaymarkError, type WaymarkError } from '../../core/error.ts';
import { isJsonObject } from '../../core/json/json.ts';
import { checkOptions, type OptionNames } from '../../core/options.ts';
import { backoff, randomFraction } from '../../core/time.ts';
import type { ModelRef } from '../model.ts';
import type { Middleware } from './middleware.ts';

/** How often and how soon a model is asked again. */
interface RetryOptions {
  /**
   * Total number of attempts.
   * @default 3
   */
  readonly attempts?: number;
  /**
   * Milliseconds before the second attempt; each further wait is twice as long.
   * @default 500
   */
  readonly delay?: number;
  /**
   * Maximum wait in milliseconds, even if the provider asks for a longer one.
   * @default 30000
   */
  readonly maxDelay?: number;
  /**
   * Whether to retry after an error.
   * @default as the error's details say
   */
  readonly shouldRetry?: (error: WaymarkError) => boolean;
  /** Returns a number from 0 to 1 for the jitter. */
  readonly random?: () => number;
}

const optionNames: OptionNames<RetryOptions> = {
  attempts: true,
  delay: true,
  maxDelay: true,
  shouldRetry: true,
  random: true,
};

/**
 * Calls a model again after a transient error, unless it has streamed a part of its answer.
 *
 * @example
 * app.defineAgent({ name: 'support', system: 'Help.', use: [retry({ attempts: 5 })] });
 */
export function retry(options: RetryOptions = {}): Middleware {
  checkOptions(options, optionNames, 'retry()', { baseMs: 'delay', maxMs: 'maxDelay' });
  const { attempts = 3, delay: first = 500, maxDelay = 30_000 } = options;
  const { shouldRetry = isRetryable, random = randomFraction } = options;
  return {
    name: 'retry',
    async model(step, next) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await next(step);
        } catch (error) {
          const isLast = attempt >= attempts || step.call.signal.aborted || step.hasStreamed();
          if (isLast || !isWaymarkError(error) || !shouldRetry(error)) throw error;
          const delay = backoff(attempt, { baseMs: first, maxMs: maxDelay, jitter: random });
          const wait = Math.min(maxDelay, Math.max(delay, retryAfterMs(error)));
          await step.clock.sleep(wait, step.call.signal);
        }
      }
    },
  };
}

function isRetryable({ details }: WaymarkError): boolean {
  return isJsonObject(details) && details.retryable === true;
}

function retryAfterMs({ details }: WaymarkError): number {
  const after = isJsonObject(details) ? details.retryAfterMs : undefined;
  return typeof after === 'number' ? after : 0;
}

/** When another model is asked. */
interface FallbackOptions {
  /**
   * Whether to try the next model after an error.
   * @default all errors except an invalid request or a stop
   */
  readonly shouldFallBack?: (error: WaymarkError) => boolean;
}

/**
 * Calls other models, in order, when one fails, unless it has streamed a part of its answer.
 *
 * @example
 * app.defineAgent({ name: 'support', system: 'Help.', use: [fallback(['small-model'])] });
 */
export function fallback(models: readonly ModelRef[], options: FallbackOptions = {}): Middleware {
  checkOptions(options, { shouldFallBack: true }, 'fallback()');
  const { shouldFallBack = isTheirs } = options;
  return {
    name: 'fallback',
    models,
    async model(step, next) {
      let current = step;
      for (const ref of models) {
        try {
          return await next(current);
        } catch (error) {
          if (step.call.signal.aborted || step.hasStreamed()) throw error;
          if (!isWaymarkError(error) || !shouldFallBack(error)) throw error;
          current = { ...step, model: step.resolveModel(ref) };
        }
      }
      return next(current);
    },
  };
}

// A request that is not valid is refused by every model.
function isTheirs({ status }: WaymarkError): boolean {
  return status !== 'INVALID_ARGUMENT' && status !== 'CANCELLED';
}
