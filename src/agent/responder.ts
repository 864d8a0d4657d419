import { WaymarkError } from '../core/error.ts';
import { toJson } from '../core/json.ts';
import { parseShape } from '../protocol/parse.ts';
import { type Chunk, modelChunk as modelChunkShape } from '../protocol/turn.ts';
import type { WorkingState } from '../session/working-state.ts';
import type { Responder } from './handler.ts';
import type { Outbox } from './outbox.ts';
import type { PartialAnswer } from './partial.ts';

const ownFields = ['turnStart', 'turnEnd', 'snapshotCreated', 'customPatch'] as const;

/** What a handler sends with. */
export function createResponder(options: {
  readonly outbox: Outbox;
  readonly working: WorkingState;
  readonly partial: PartialAnswer;
}): Responder {
  const { outbox, working, partial } = options;
  const send: Responder['send'] = async (chunk) => {
    const own = ownFields.find((field) => field in chunk);
    if (own !== undefined) {
      throw new WaymarkError(
        'INVALID_ARGUMENT',
        `A handler cannot send "${own}": the turn loop does.`,
      );
    }
    const { modelChunk, artifact, status } = chunk;
    if (modelChunk !== undefined) partial.add(modelChunk);
    const stored = artifact === undefined ? undefined : working.addArtifacts([artifact])[0];
    const { status: _, ...rest } = chunk;
    const parsed: Chunk = {
      ...rest,
      ...(stored && { artifact: stored }),
      ...(status !== undefined && { status: toJson(status, 'status') }),
    };
    await outbox.send(parsed);
  };
  return {
    send,
    modelChunk: (chunk) =>
      send({
        modelChunk: Object.isFrozen(chunk)
          ? chunk
          : parseShape(modelChunkShape, chunk, 'model chunk'),
      }),
    status: (status) => send({ status }),
    artifact: (artifact) => send({ artifact }),
  };
}
