import type { RequestOptions } from '../api/types.ts';
import { isWaymarkError } from '../core/error.ts';
import { randomBytes } from '../core/platform.ts';
import { autoPrefix } from '../protocol/ids.ts';
import type { AgentInfo } from '../protocol/requests.ts';
import type { Input } from '../protocol/turn.ts';
import { isPassing, type Transport } from './transport.ts';

/** The input under the id of its call, its own, or a new one, so that it can be sent again when its answer is lost. */
export function identified(
  input: Input,
  { requestId = input.requestId ?? newRequestId() }: RequestOptions = {},
): Input {
  return { ...input, requestId };
}

function newRequestId(): string {
  return autoPrefix + randomBytes(new Uint8Array(16)).join('.');
}

/** How often a server that does not answer is asked whether it knows request ids. */
const maxTries = 4;

/**
 * Whether the server would know an input that is sent again. Asked only when an answer was lost, and again while the server
 * cannot be reached.
 */
export async function knowsRequests(
  transport: Transport,
  agent: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  for (let tries = 1; ; tries++) {
    try {
      const params = { agent };
      const info = await transport.json<AgentInfo>({ operation: 'getAgent', params, signal });
      return info.metadata?.requestIds === true;
    } catch (error) {
      const delay = transport.reconnect.delayOf(tries);
      const mayPass = isWaymarkError(error) && isPassing(error.status);
      if (delay === undefined || !mayPass || tries >= maxTries) return false;
      await transport.clock.sleep(delay, signal);
    }
  }
}
