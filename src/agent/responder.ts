import { WaymarkError } from '../core/error.ts';
import { toJson } from '../core/json.ts';
import { parseShape } from '../protocol/parse.ts';
import { type ModelChunk, modelChunk as modelChunkShape } from '../protocol/turn.ts';
import type { WorkingState } from '../session/working-state.ts';
import type { Control } from './control.ts';
import type { Responder } from './handler.ts';
import type { Outbox } from './outbox.ts';
import type { PartialAnswer } from './partial.ts';

const ownFields = ['turnStart', 'turnEnd', 'snapshotCreated', 'customPatch'] as const;

/** What a handler sends with. */
export function createResponder(options: {
  readonly outbox: Outbox;
  readonly working: WorkingState;
  readonly partial: PartialAnswer;
  readonly control: Control;
}): Responder {
  const { outbox, working, partial, control } = options;
  const send: Responder['send'] = async (chunk) => {
    const own = ownFields.find((field) => field in chunk);
    if (own !== undefined) {
      throw new WaymarkError(
        'INVALID_ARGUMENT',
        `A handler cannot send "${own}": the turn loop does.`,
      );
    }
    const modelChunk = chunk.modelChunk && parseChunk(chunk.modelChunk);
    const status = chunk.status === undefined ? undefined : toJson(chunk.status, 'status');
    // Last, so that a chunk that is refused changes nothing.
    const [artifact] = chunk.artifact === undefined ? [] : working.addArtifacts([chunk.artifact]);
    // What nobody sees any more is no part of the answer that is kept.
    if (modelChunk !== undefined && !control.signal.aborted) partial.add(modelChunk);
    await outbox.send({
      ...(modelChunk && { modelChunk }),
      ...(status !== undefined && { status }),
      ...(artifact && { artifact }),
    });
  };
  return {
    send,
    modelChunk: (modelChunk) => send({ modelChunk }),
    status: (status) => send({ status }),
    artifact: (artifact) => send({ artifact }),
  };
}

function parseChunk(chunk: ModelChunk): ModelChunk {
  if (Object.isFrozen(chunk)) return chunk;
  return plainText(chunk) ?? parseShape(modelChunkShape, chunk, 'model chunk');
}

/** A chunk that is one piece of text, as nearly all are: the schema would say the same and take ten times as long. */
function plainText({ role, index, content, ...rest }: ModelChunk): ModelChunk | undefined {
  const part = Array.isArray(content) && content.length === 1 ? content[0] : undefined;
  if (typeof part !== 'object' || part === null || !('text' in part)) return undefined;
  const { text, ...others } = part;
  if (typeof text !== 'string' || !isEmpty(others) || !isEmpty(rest)) return undefined;
  if (index !== undefined && !Number.isInteger(index)) return undefined;
  if (role !== undefined && role !== 'model') return undefined;
  return {
    ...(role !== undefined && { role }),
    ...(index !== undefined && { index }),
    content: [{ text }],
  };
}

function isEmpty(object: object): boolean {
  for (const _ in object) return false;
  return true;
}
