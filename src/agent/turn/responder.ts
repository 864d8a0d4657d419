import { WaymarkError } from '../../core/error.ts';
import { toJson } from '../../core/json/json.ts';
import { parse } from '../../core/schema/schema.ts';
import type { PartialAnswer } from '../../protocol/messages/streamed-parts.ts';
import { parseShape } from '../../protocol/parse.ts';
import { type ModelChunk, modelChunk as modelChunkShape } from '../../protocol/turn.ts';
import type { WorkingState } from '../../session/working-state.ts';
import type { Responder } from '../spec/handler.ts';
import type { AgentSpec } from '../spec/spec.ts';
import type { ChunkSink } from './chunk-sink.ts';
import { noteChunk } from './partial.ts';
import { streamsArtifact } from './state-chunks.ts';
import type { StopControl } from './stop-control.ts';
import type { Turn } from './turn-state.ts';

const plainKeys: ReadonlySet<string> = new Set(['role', 'index', 'content']);

const ownFields = ['turnStart', 'turnEnd', 'reset', 'snapshotCreated', 'customPatch'] as const;

/** Creates what a handler sends chunks with. */
export function createResponder(options: {
  readonly chunkSink: ChunkSink;
  readonly working: WorkingState;
  readonly partial: PartialAnswer;
  readonly control: StopControl;
  readonly turn: Turn | undefined;
  readonly spec: Pick<AgentSpec, 'statusSchema'>;
}): Responder {
  const { chunkSink, working, partial, control } = options;
  const sendText = (text: ModelChunk): Promise<void> => {
    // After a stop chunks are dropped, so they are no part of the kept answer either.
    if (!control.signal.aborted) noteChunk(partial, text);
    return chunkSink.send({ modelChunk: text });
  };
  const send: Responder['send'] = async (chunk) => {
    const own = ownFields.find((field) => field in chunk);
    if (own !== undefined) {
      throw new WaymarkError(
        'INVALID_ARGUMENT',
        `A handler cannot send "${own}": the turn loop does.`,
      );
    }
    const modelChunk = chunk.modelChunk && parseChunk(chunk.modelChunk);
    const checked = checkStatus(options.spec, chunk.status);
    // Awaited only if it is a promise, so that chunks keep their order.
    const given = checked instanceof Promise ? await checked : checked;
    const status = given === undefined ? undefined : toJson(given, 'status');
    // Last, so that a refused chunk changes nothing.
    const [artifact] =
      chunk.artifact === undefined ? [] : working.addArtifacts([chunk.artifact], { quiet: true });
    const streamed = artifact !== undefined && streamsArtifact(options.turn, artifact);
    if (modelChunk !== undefined && !control.signal.aborted) noteChunk(partial, modelChunk);
    // The artifact was the whole chunk, and it was streamed before.
    if (artifact !== undefined && !streamed && modelChunk === undefined && status === undefined) {
      return;
    }
    await chunkSink.send({
      ...(modelChunk && { modelChunk }),
      ...(status !== undefined && { status }),
      ...(streamed && { artifact }),
    });
  };
  return {
    send,
    modelChunk(modelChunk) {
      const text = plainText(modelChunk);
      return text === undefined ? send({ modelChunk }) : sendText(text);
    },
    status: (status) => send({ status }),
    artifact: (artifact) => send({ artifact }),
  };
}

function checkStatus({ statusSchema }: Pick<AgentSpec, 'statusSchema'>, status: unknown): unknown {
  if (statusSchema === undefined || status === undefined) return status;
  return parse(statusSchema, status, 'The status');
}

function parseChunk(chunk: ModelChunk): ModelChunk {
  return Object.isFrozen(chunk) ? chunk : parseShape(modelChunkShape, chunk, 'model chunk');
}

/** A copy of a chunk that is one piece of text, as nearly all are. The schema gives the same result ten times slower. */
function plainText(chunk: ModelChunk): ModelChunk | undefined {
  if (typeof chunk !== 'object' || chunk === null) return undefined;
  for (const key in chunk) if (!plainKeys.has(key)) return undefined;
  const { role, index, content } = chunk;
  const part = Array.isArray(content) && content.length === 1 ? content[0] : undefined;
  if (typeof part !== 'object' || part === null) return undefined;
  for (const key in part) if (key !== 'text') return undefined;
  if (!('text' in part) || typeof part.text !== 'string') return undefined;
  const copy = [{ text: part.text }];
  if (role === undefined) return index === undefined ? { content: copy } : undefined;
  if (role !== 'model') return undefined;
  if (index === undefined) return { role, content: copy };
  return Number.isSafeInteger(index) ? { role, index, content: copy } : undefined;
}
