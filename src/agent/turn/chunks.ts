import { settled } from '../../core/async/promises.ts';
import { invalid } from '../../core/error.ts';
import { toJson } from '../../core/json/json.ts';
import { letOthersRun } from '../../core/platform.ts';
import { parse } from '../../core/schema/schema.ts';
import type { PartialAnswer } from '../../protocol/messages.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { Artifact } from '../../protocol/state.ts';
import { type Chunk, type ModelChunk, modelChunk as modelChunkShape } from '../../protocol/turn.ts';
import { isSameArtifact, type WorkingState } from '../../session/working-state.ts';
import type { EventCursor } from '../../store/contract/store.ts';
import type { Responder } from '../contract/handler.ts';
import type { AgentSpec } from '../contract/spec.ts';
import type { CallerCursor } from '../persistence/caller-cursor.ts';
import type { EventLog } from '../persistence/event-log.ts';
import { noteChunk, type StopControl } from './stop.ts';
import type { ActiveRun, Turn } from './turn-state.ts';

/** Sends without waiting after which other work gets the event loop: a stop must arrive, and the claim be prolonged. */
const maxUnbroken = 1_000;

/** Takes the chunks of an invocation to the log of its run, where the caller's cursor and watchers read them. */
export class ChunkSink {
  /** A chunk as the caller may see it. */
  readonly shown: (chunk: Chunk) => Chunk | undefined;
  readonly #signal: AbortSignal;
  #caller: CallerCursor | undefined;
  #log: EventLog | undefined;
  #sent = 0;

  constructor(options: {
    readonly caller: CallerCursor | undefined;
    readonly leave: (chunk: Chunk) => Chunk | undefined;
    readonly signal: AbortSignal;
  }) {
    this.#caller = options.caller;
    this.shown = options.leave;
    this.#signal = options.signal;
  }

  set log(log: EventLog) {
    this.#log = log;
    this.#caller?.follow(log.buffer);
  }

  /** Sends a chunk and waits for a slow caller. After a stop the chunk is dropped, and this returns at once. */
  send(chunk: Chunk): Promise<void> {
    if (this.#signal.aborted) return settled;
    try {
      this.push(chunk);
    } catch (error) {
      return Promise.reject(error);
    }
    if (this.#caller?.isFull) return this.#caller.room(this.#signal);
    return ++this.#sent % maxUnbroken === 0 ? letOthersRun() : settled;
  }

  /** Sends a chunk that must arrive, also after a stop, without waiting for the caller. */
  push(chunk: Chunk): void {
    let shown: Chunk | undefined;
    try {
      shown = this.shown(chunk);
    } finally {
      // An event is logged even when its transform throws: only the caller does not see it.
      if (this.#log !== undefined) {
        this.#caller?.follow(this.#log.buffer);
        this.#log.push(chunk, shown);
      } else if (shown !== undefined) this.#show(shown);
    }
  }

  deliver(chunk: Chunk): void {
    const shown = this.shown(chunk);
    if (shown !== undefined) this.#show(shown);
  }

  /** Sends a transformed chunk of a run in another process, and waits for a slow caller. */
  async relay(chunk: Chunk, { attempt, seq }: EventCursor): Promise<void> {
    this.#caller?.push({ attempt, seq, chunk, shown: chunk, kept: true });
    await this.#caller?.room();
  }

  /** The caller sees nothing more; the log continues. */
  disconnect(): void {
    this.#caller?.close();
    this.#caller = undefined;
  }

  #show(chunk: Chunk): void {
    this.#caller?.push({ attempt: 0, seq: 0, chunk, shown: chunk, kept: false });
  }
}

const plainKeys: ReadonlySet<string> = new Set(['role', 'index', 'content']);

const ownFields = ['turnStart', 'turnEnd', 'reset', 'snapshotCreated', 'customPatch'] as const;

export function createResponder(
  options: Streamed & {
    readonly control: StopControl;
    readonly spec: Pick<AgentSpec, 'statusSchema'>;
  },
): Responder {
  const { chunkSink, working, partial, control } = options;
  const sendText = (text: ModelChunk): Promise<void> => {
    // After a stop chunks are dropped, so they are no part of the kept answer either.
    if (!control.signal.aborted) noteChunk(partial, text);
    return chunkSink.send({ modelChunk: text });
  };
  const send: Responder['send'] = async (chunk) => {
    const own = ownFields.find((field) => field in chunk);
    if (own !== undefined) {
      throw invalid(`A handler cannot send "${own}": the turn loop does.`);
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

/** Characters of an artifact's text up to which it is streamed and stored as a whole when it is edited. */
const longText = 4096;

interface Streamed {
  readonly chunkSink: ChunkSink;
  readonly working: WorkingState;
  readonly partial: PartialAnswer;
  readonly turn: Turn | undefined;
}

/** Streams what a turn changes in the session: artifacts, and the custom state as a whole once and then as patches. */
export function streamStateChanges(
  invocation: Streamed & { readonly run: ActiveRun | undefined },
): void {
  const { working, partial, chunkSink } = invocation;
  working.listen({
    onMessages: (messages) => {
      if (messages.some(({ role }) => role === 'model')) partial.clear();
    },
    onArtifacts: (artifacts, patch) => {
      const { turn, run } = invocation;
      if (turn === undefined) return;
      // After a takeover, clients may have a later version than the one that is edited.
      const isKnown = run?.log.attempt === 1 || turn.artifactsSent?.has(patch?.name ?? '') === true;
      const artifactPatch = isKnown && (patch?.length ?? 0) > longText ? patch : undefined;
      for (const artifact of artifacts) {
        if (!streamsArtifact(turn, artifact)) continue;
        chunkSink.push({ artifact, ...(artifactPatch && { artifactPatch }) });
      }
    },
    onCustom: ({ patch, custom }) => {
      const { turn } = invocation;
      if (turn === undefined) return;
      const whole = { op: 'replace', path: '', value: custom ?? null } as const;
      chunkSink.push({ customPatch: turn.customSent ? [...patch] : [whole] });
      turn.customSent = true;
    },
  });
}

/**
 * Whether an artifact has to be streamed; notes that it is. A named artifact is not streamed twice with the same content:
 * a handler may add an artifact and send it as well, in either order.
 */
function streamsArtifact(turn: Turn | undefined, artifact: Artifact): boolean {
  const { name } = artifact;
  if (turn === undefined || name === undefined) return true;
  turn.artifactsSent ??= new Map();
  const sent = turn.artifactsSent.get(name);
  if (sent !== undefined && isSameArtifact(sent, artifact)) return false;
  turn.artifactsSent.set(name, artifact);
  return true;
}
