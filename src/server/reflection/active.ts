import { linkSignals } from '../../core/async/signal.ts';
import { WaymarkError } from '../../core/error.ts';
import type { Caller } from '../http/auth.ts';

/** The actions that are being run, by trace id and whose they are: a client may choose the id of its trace. */
export interface Active {
  begin(
    traceId: string,
    caller: Caller,
    signal: AbortSignal,
  ): { readonly signal: AbortSignal; end(): void };
  /** Stops an action of this caller; `false` when none of this id is running. */
  cancel(traceId: string, caller: Caller): boolean;
}

export function createActive(): Active {
  const running = new Map<string, (reason: unknown) => void>();
  return {
    begin(traceId, caller, signal) {
      const key = keyOf(traceId, caller);
      const link = linkSignals(signal);
      running.set(key, link.abort);
      return {
        signal: link.signal,
        end() {
          if (running.get(key) === link.abort) running.delete(key);
          link.release();
        },
      };
    },
    cancel(traceId, caller) {
      const abort = running.get(keyOf(traceId, caller));
      abort?.(new WaymarkError('CANCELLED', 'The action was cancelled.'));
      return abort !== undefined;
    },
  };
}

function keyOf(traceId: string, { principal }: Caller): string {
  return JSON.stringify([traceId, principal]);
}
