import { isWaymarkError, type WaymarkError } from '../../core/error.ts';
import { checkOptions } from '../../core/options.ts';
import type { ModelRef } from '../model.ts';
import type { Middleware } from './middleware.ts';

/** When another model is asked. */
export interface FallbackOptions {
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

// What is wrong with the request is wrong for every model.
function isTheirs({ status }: WaymarkError): boolean {
  return status !== 'INVALID_ARGUMENT' && status !== 'CANCELLED';
}
