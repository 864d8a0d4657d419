import type { RequestOptions } from '../api/types.ts';
import { isWaymarkError, WaymarkError } from '../core/error.ts';
import type { SteerResult } from '../protocol/requests.ts';
import type { Input } from '../protocol/turn.ts';
import { isPassing } from './reconnect.ts';
import { identified } from './request-id.ts';
import type { Transport } from './transport.ts';

/** How often a message is sent whose answer was lost. */
const maxTries = 4;

/** Adds a message to a running turn. Sent again under its request id while the server cannot be reached. */
export async function steerRun(
  transport: Transport,
  run: { readonly agent: string; readonly snapshot: string | undefined },
  given: Input,
  { signal, ...options }: RequestOptions & { readonly signal?: AbortSignal } = {},
): Promise<SteerResult> {
  const { agent, snapshot } = run;
  if (snapshot === undefined) throw notStarted();
  const body = { input: identified(given, options) };
  for (let tries = 1; ; tries++) {
    try {
      const params = { agent, snapshot };
      return await transport.json<SteerResult>({ operation: 'steer', params, body, signal });
    } catch (error) {
      const delay = transport.reconnect.delayOf(tries);
      const mayPass = isWaymarkError(error) && isPassing(error.status);
      if (delay === undefined || !mayPass || tries >= maxTries) throw error;
      await transport.clock.sleep(delay, signal);
    }
  }
}

function notStarted(): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    'The turn has ended, or its agent has no store. Send a new turn.',
  );
}
