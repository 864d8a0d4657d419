import type { RequestOptions } from '../api/types.ts';
import { randomBytes } from '../core/platform.ts';
import { autoPrefix } from '../protocol/ids.ts';
import type { AgentInfo } from '../protocol/requests.ts';
import type { Input } from '../protocol/turn.ts';
import { maxTries, retried, type Transport } from './transport.ts';

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

/** Whether the server would recognize an input that is sent again. Asked only after an answer was lost. */
export async function knowsRequests(
  transport: Transport,
  agent: string,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  const request = { operation: 'getAgent', params: { agent }, signal } as const;
  try {
    const ask = (): Promise<AgentInfo> => transport.json<AgentInfo>(request);
    return (await retried(transport, signal, ask, maxTries)).metadata?.requestIds === true;
  } catch {
    return false;
  }
}
