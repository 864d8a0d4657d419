import type { LoadedSnapshot, WireTypes } from '../../api/types.ts';
import type { State } from '../../protocol/state.ts';
import { toResponseId } from './ids.ts';
import { outputItems, type TurnMessages, turnsOf } from './items.ts';
import { type ResponseCall, unknownResponse } from './openai-server.ts';
import {
  finalStatus,
  type ResponseObject,
  type ResponseStatus,
  requestOf,
  toResponse,
} from './response.ts';

/** The snapshot that a response is. */
type Stored = LoadedSnapshot<WireTypes>;

/** Reads the snapshot of a response. */
export async function readSnapshot({ agent, snapshotId, options }: ResponseCall): Promise<Stored> {
  const snapshot = await agent.getSnapshot({ snapshotId }, options);
  if (!snapshot) throw unknownResponse(toResponseId(snapshotId));
  return snapshot;
}

/** The messages of a response, and those of the turn before it. */
export function turnOf({ snapshotId, state }: Stored): {
  readonly turn: TurnMessages;
  readonly before: TurnMessages | undefined;
} {
  const turns = turnsOf((state as State | undefined)?.messages ?? [], snapshotId);
  const last = turns.at(-1);
  // A turn that has added nothing yet.
  if (last?.snapshotId !== snapshotId) return { turn: { snapshotId, messages: [] }, before: last };
  return { turn: last, before: turns.at(-2) };
}

/** A response as its snapshot tells it. */
export function toStored({ agent }: ResponseCall, snapshot: Stored): ResponseObject {
  const { snapshotId, usage, error, finishReason, parentId } = snapshot;
  const { turn } = turnOf(snapshot);
  const request = requestOf(turn.messages);
  const previous =
    request.conversation === undefined && parentId !== undefined
      ? { previous_response_id: toResponseId(parentId) }
      : {};
  return toResponse(
    { snapshotId, model: agent.name, echo: { ...previous, ...request } },
    {
      status: statusOf(snapshot),
      output: outputItems(turn),
      usage,
      error,
      finishReason,
    },
  );
}

function statusOf({ status, finishReason }: Stored): ResponseStatus {
  switch (status) {
    case 'pending':
    // Its worker has died; another one takes over.
    case 'expired':
      return 'in_progress';
    case 'succeeded':
      return finalStatus(finishReason);
    case 'failed':
      return 'failed';
    case 'aborted':
      return 'cancelled';
  }
}
