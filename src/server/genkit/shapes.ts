import * as v from 'valibot';
import type { Agent, CallOptions } from '../../agent/contract/agent.ts';
import { checkLookup } from '../../protocol/ids.ts';
import type { SnapshotStatus } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import { type Chunk, init, input, type Output } from '../../protocol/turn.ts';
import { found } from '../http/answer.ts';

/** The body of a turn: `init` may be missing or null. */
export const genkitTurn = v.object({ data: input, init: v.optional(v.nullable(init)) });

/** The body of `getSnapshot`. Genkit's clients send exactly one id; both mean what they mean everywhere. */
export const genkitLookup = v.object({
  data: v.object({ snapshotId: v.optional(v.string()), sessionId: v.optional(v.string()) }),
});

export const genkitAbort = v.object({ data: v.object({ snapshotId: v.string() }) });

export function toGenkitStatus(status: SnapshotStatus): string {
  return status === 'succeeded' ? 'completed' : status;
}

/** The fields of a chunk that Genkit's clients know; `undefined` when none is left. */
export function toGenkitChunk(chunk: Chunk): object | undefined {
  // A sub-agent's patches, artifacts and end are not those of the agent that is being talked to.
  if (chunk.agent !== undefined) return undefined;
  const { modelChunk, customPatch, artifact, turnEnd } = chunk;
  if (!modelChunk && !customPatch && !artifact && !turnEnd) return undefined;
  const { snapshotId, finishReason } = turnEnd ?? {};
  return { modelChunk, customPatch, artifact, turnEnd: turnEnd && { snapshotId, finishReason } };
}

/** An output with the fields that Genkit's clients know. */
export function toGenkitOutput(output: Output): object {
  const { sessionId, snapshotId, state, message, artifacts, finishReason, error } = output;
  return { sessionId, snapshotId, state, message, artifacts, finishReason, error };
}

/** The snapshot that a client looks up, with the fields that Genkit's clients know. */
export async function readGenkitSnapshot(
  agent: Agent,
  lookup: v.InferOutput<typeof genkitLookup>['data'],
  options: CallOptions,
): Promise<object> {
  const { snapshotId: id, sessionId: session = '' } = lookup;
  const read = await agent.getSnapshot(checkLookup(lookup), options);
  const snapshot = found(read, id === undefined ? 'session' : 'snapshot', id ?? session);
  const { snapshotId, sessionId, parentId, createdAt, updatedAt, heartbeatAt } = snapshot;
  const { status, finishReason, error } = snapshot;
  const state = snapshot.state as State | undefined;
  return {
    snapshotId,
    sessionId,
    parentId,
    createdAt,
    updatedAt,
    heartbeatAt,
    status: toGenkitStatus(status),
    finishReason,
    error,
    // Genkit's client takes the session of a chat it loads from the state.
    state: state && { ...state, sessionId },
  };
}

export async function abortGenkitRun(
  agent: Agent,
  snapshotId: string,
  options: CallOptions,
): Promise<object> {
  const status = await agent.abort(snapshotId, options);
  return { snapshotId, status: status && toGenkitStatus(status) };
}
