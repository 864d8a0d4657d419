import type { RequestOptions } from '../../api/types.ts';
import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import { formerContentHash, sha256 } from '../../core/json/hash.ts';
import { isJsonObject, type Json } from '../../core/json/json.ts';
import { autoPrefix, isName, maxIdLength } from '../../protocol/ids.ts';
import type { Input } from '../../protocol/turn.ts';
import type { RequestMark, RequestRecord, Scope } from '../../store/contract/store.ts';
import { type AgentSpec, fullStore } from '../spec/spec.ts';

/** The input with the request id of a call, if the call has one. */
export function underRequest(input: Input, { requestId }: RequestOptions = {}): Input {
  return requestId === undefined ? input : { ...input, requestId };
}

/**
 * The input without an automatic request id if the agent cannot store ids. Clients of this package generate ids with the prefix
 * `auto-`, which the user did not ask for.
 */
export function withoutAutoId(spec: AgentSpec, input: Input): Input {
  if (input.requestId?.startsWith(autoPrefix) !== true || keepsRequests(spec)) return input;
  const { requestId: _, ...rest } = input;
  return rest;
}

/** Whether the agent's store can keep request ids. */
function keepsRequests(spec: Pick<AgentSpec, 'store'>): boolean {
  return fullStore(spec)?.runs !== undefined;
}

/** Refuses an invalid request id, or any id if the agent's store cannot keep ids. */
export function checkRequestId(spec: AgentSpec, { requestId }: Input): void {
  if (requestId === undefined) return;
  if (!isName(requestId)) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `The request id is not valid. Expected 1 to ${maxIdLength} characters of well-formed text without NUL.`,
    );
  }
  if (keepsRequests(spec)) return;
  throw new WaymarkError(
    'FAILED_PRECONDITION',
    spec.store === undefined
      ? `Agent "${spec.name}" has no store, so it cannot tell whether a request was sent before. Pass \`store\` to waymark() or to the agent, or leave out the request id.`
      : `The store of agent "${spec.name}" has no claims, so it cannot keep request ids. Leave out the request id, or use a store that has claims, such as sqliteStore.`,
  );
}

/** The keys that a run is claimed with, one for each input with a request id. */
export function requestMarks(scope: Scope, inputs: readonly Input[]): readonly RequestMark[] {
  const marks: RequestMark[] = [];
  for (const input of inputs) {
    if (input.requestId === undefined) continue;
    const { requestId, ...rest } = input;
    marks.push({ key: requestKey(scope, requestId), digest: formerContentHash(rest as Json) });
  }
  return marks;
}

/** The store's key of a request id, which is unique per owner and agent. */
export function requestKey({ owner, agent }: Scope, requestId: string): string {
  return sha256(JSON.stringify([owner ?? null, agent, requestId]));
}

/** The earlier run with the same request id, if a claim was refused because of it. */
export function knownRequest(error: unknown): RequestRecord | undefined {
  if (!isWaymarkError(error) || error.status !== 'ALREADY_EXISTS') return undefined;
  const { details } = error;
  const request = isJsonObject(details) ? details.request : undefined;
  if (!isJsonObject(request)) return undefined;
  const { runId, sessionId } = request;
  if (typeof runId !== 'string' || typeof sessionId !== 'string') return undefined;
  return { runId, sessionId };
}
