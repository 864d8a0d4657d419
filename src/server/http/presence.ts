import { WaymarkError } from '../../core/error.ts';
import type { Clock } from '../../core/time/clock.ts';
import { authenticate, type Caller } from './auth.ts';
import type { HandlerOptions } from './handler-options.ts';
import { isRefusal } from './identify.ts';

/** A stream, a WebSocket or a call that is waited for. */
export interface Visit {
  readonly caller: Caller;
  /** The request, with the credentials by which the caller was authenticated. */
  readonly request: Request;
  /** Ends it. */
  readonly end: (reason: WaymarkError) => void;
}

/** Who is connected, so that access can be taken away while a connection is open. */
export interface Presence {
  /** Adds a connection; the returned function removes it. */
  enter(visit: Visit): () => void;
  /** Ends the connections of a principal; gives their number. */
  disconnect(principal: string): number;
}

/** Keeps the open connections, and authenticates each again at the interval of `reauthenticate`. */
export function createPresence(
  { auth, reauthenticate }: Pick<HandlerOptions, 'auth' | 'reauthenticate'>,
  clock: Clock,
): Presence {
  const visits = new Map<string, Set<Visit>>();

  const check = async ({ caller, request, end }: Visit): Promise<void> => {
    try {
      const { principal } = await authenticate(auth, request);
      if (principal !== caller.principal) end(revoked());
    } catch (error) {
      // Without an answer, it is asked again after the next interval.
      if (isRefusal(error)) end(revoked(error));
    }
  };

  return {
    enter(visit) {
      const { principal } = visit.caller;
      if (principal === undefined) return () => {};
      const mine = visits.get(principal) ?? new Set();
      visits.set(principal, mine.add(visit));
      const stop =
        auth && reauthenticate !== undefined
          ? clock.every(reauthenticate, () => void check(visit))
          : () => {};
      return () => {
        stop();
        mine.delete(visit);
        if (mine.size === 0 && visits.get(principal) === mine) visits.delete(principal);
      };
    },
    disconnect(principal) {
      const mine = [...(visits.get(principal) ?? [])];
      visits.delete(principal);
      for (const { end } of mine) end(revoked());
      return mine.length;
    },
  };
}

function revoked(cause?: unknown): WaymarkError {
  return new WaymarkError('UNAUTHENTICATED', 'Access was revoked. Authenticate again.', { cause });
}
