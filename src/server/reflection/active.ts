import { WaymarkError } from '../../core/error.ts';
import { linkSignals } from '../../core/signal.ts';

/** The actions that are being run, by trace id. */
export interface Active {
  begin(traceId: string, signal: AbortSignal): { readonly signal: AbortSignal; end(): void };
  /** Stops an action; `false` when none of this id is running. */
  cancel(traceId: string): boolean;
}

export function createActive(): Active {
  const running = new Map<string, (reason: unknown) => void>();
  return {
    begin(traceId, signal) {
      const link = linkSignals(signal);
      running.set(traceId, link.abort);
      return {
        signal: link.signal,
        end() {
          running.delete(traceId);
          link.release();
        },
      };
    },
    cancel(traceId) {
      const abort = running.get(traceId);
      abort?.(new WaymarkError('CANCELLED', 'The action was cancelled.'));
      return abort !== undefined;
    },
  };
}
