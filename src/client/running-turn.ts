import type { RequestOptions } from '../api/types.ts';
import { failedPrecondition } from '../core/error.ts';
import { after } from '../core/time.ts';
import type { AbortResult, SteerResult } from '../protocol/requests.ts';
import type { Input } from '../protocol/turn.ts';
import { identified } from './request-id.ts';
import { maxTries, retried, type Transport } from './transport.ts';

/** Asks the server to stop a run, and retries while it cannot be reached. `undefined` for an unknown id. */
export async function abortRun(
  transport: Transport,
  params: { readonly agent: string; readonly snapshot: string },
  signal?: AbortSignal,
): Promise<AbortResult | undefined> {
  const request = { operation: 'abort', params, signal } as const;
  return await retried(transport, signal, () => transport.find<AbortResult>(request));
}

/** How long a stop waits to learn the id of a turn that was just sent. */
const stopTimeoutMs = 5_000;

/**
 * Stops a turn when the signal aborts: on the server, by its id, so that it ends there with its partial answer, which
 * then comes as the output. The line is cut only where the turn has no id.
 */
export function stopOnAbort(transport: Transport, agent: string, signal: AbortSignal | undefined) {
  const cut = new AbortController();
  const done = new AbortController();
  let turn: { readonly snapshotId: string | undefined } | undefined;

  const stop = (): void => {
    const cutNow = (): void => cut.abort(signal?.reason);
    if (turn?.snapshotId) {
      abortRun(transport, { agent, snapshot: turn.snapshotId }, done.signal).catch(cutNow);
    } else if (turn) cutNow();
    else {
      const cutUnlessStarted = (): void => {
        if (!turn) cutNow();
      };
      const cancel = after(transport.clock, stopTimeoutMs, cutUnlessStarted, { keepAlive: true });
      done.signal.addEventListener('abort', cancel);
    }
  };
  if (signal?.aborted) cut.abort(signal.reason);
  else signal?.addEventListener('abort', stop);

  return {
    /** Aborts when the only way left is to cut the connection. */
    cut: cut.signal,
    /** To be called with the reserved id when the turn has started; without one it cannot be stopped by id. */
    started(snapshotId: string | undefined): void {
      turn = { snapshotId };
      if (signal?.aborted) stop();
    },
    /** To be called when the turn has ended, however it did. */
    ended(): void {
      signal?.removeEventListener('abort', stop);
      done.abort();
    },
  };
}

/** Adds a message to a running turn. Sent again under its request id while the server cannot be reached. */
export async function steerRun(
  transport: Transport,
  run: { readonly agent: string; readonly snapshot: string | undefined },
  given: Input,
  { signal, ...options }: RequestOptions & { readonly signal?: AbortSignal } = {},
): Promise<SteerResult> {
  const { agent, snapshot } = run;
  if (snapshot === undefined) {
    throw failedPrecondition('The turn has ended, or its agent has no store. Send a new turn.');
  }
  const body = { input: identified(given, options) };
  const request = { operation: 'steer', params: { agent, snapshot }, body, signal } as const;
  return await retried(transport, signal, () => transport.json<SteerResult>(request), maxTries);
}
