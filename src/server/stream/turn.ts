import { internalsOf } from '../../agent/define/create-agent.ts';
import type { Agent, InvokeOptions } from '../../agent/spec/agent.ts';
import { handled } from '../../core/async/promises.ts';
import { abortError, linkSignals } from '../../core/async/signal.ts';
import type { JsonObject } from '../../core/json/json.ts';
import type { Init, Input, Output } from '../../protocol/turn.ts';
import { type Caller, ownerOf } from '../http/auth.ts';
import { toWireError } from '../http/error-response.ts';
import { toPublicOutput } from '../http/public-output.ts';
import { accepted, cursorFeed } from './cursor-feed.ts';
import type { FeedBatch } from './feed.ts';

/** What a server was asked to run, and for whom. */
export interface TurnOptions {
  readonly input: Input;
  readonly init?: Init | undefined;
  readonly caller: Caller;
  /** Aborts when the reader has left, or the server ends. */
  readonly reader: AbortSignal;
  /** Whether the turn is stopped when its reader leaves. */
  readonly stopWithReader: boolean;
  /**
   * Whether a stream that is cut can be taken up again, and so may end without a final event.
   * @default true, where the agent's runs can be watched
   */
  readonly resumable?: boolean;
  /** Hears what an `error` event does not say. */
  readonly onFault: (error: unknown) => void;
}

/** A turn that a server runs. */
export interface ServedTurn {
  /** Resolves when the turn has been accepted, rejects with the reason when it was refused. */
  readonly accepted: Promise<void>;
  /** What happens, up to an `output` or `error`; ends without one only when its reader has left. */
  readonly events: AsyncGenerator<FeedBatch>;
  /** Resolves when the turn is over, whether or not it is read. */
  readonly done: Promise<void>;
  /** Resolves when the turn is over, and the background run that it may have become. Never rejects. */
  ended(): Promise<void>;
}

/** Starts a turn, which continues without its client if the result can be fetched later. */
export function startTurn(
  agent: Agent,
  { input, init, caller, reader, stopWithReader, resumable = true, onFault }: TurnOptions,
): ServedTurn {
  // A state that only the client holds is lost with the client.
  const stop = stopWithReader || agent.metadata.stateManagement === 'client';
  const link = stop ? linkSignals(reader) : undefined;
  const turn = internalsOf(agent).stream(input, {
    ...invokeOptions(init, caller),
    accept: agent.metadata.watchable,
    ...(link && { signal: link.signal }),
  });
  // A detached turn is only reported; to see its events, watch it.
  const watched = agent.metadata.watchable && input.detach !== true;
  const output = turn.settled();
  const end = (): void => link?.release();
  const done = output.then(end, end);
  const batches = cursorFeed(turn.cursor, { agent, ...ownerOf(caller), reader, watched });
  const events = turnEvents(turn.sent, batches, output, {
    reader,
    resumable: watched && resumable,
    onFault,
  });
  const ended = async (): Promise<void> => {
    const { finishReason, snapshotId } = await output;
    if (finishReason !== 'detached' || snapshotId === undefined) return;
    await agent.wait(snapshotId, ownerOf(caller));
  };
  return {
    accepted: handled(turn.sent.then(() => accepted(turn.cursor))),
    events,
    done,
    ended: () => ended().catch(() => {}),
  };
}

/** The options of a call that begins a turn: what a client sent, and who it is. */
export function invokeOptions(
  init: Init | undefined,
  { principal, context }: Caller,
): InvokeOptions {
  const { snapshotId, sessionId, state, from, ifHead } = init ?? {};
  return {
    remote: true,
    ...(snapshotId !== undefined && { snapshotId }),
    ...(sessionId !== undefined && { sessionId }),
    ...(state !== undefined && { state }),
    ...(from !== undefined && { from }),
    ...(ifHead !== undefined && { ifHead }),
    ...(principal !== undefined && { owner: principal }),
    ...(context !== undefined && { context: context as JsonObject }),
  };
}

async function* turnEvents(
  sent: Promise<void>,
  batches: ReturnType<typeof cursorFeed>,
  output: Promise<Output>,
  {
    reader,
    resumable,
    onFault,
  }: Pick<TurnOptions, 'reader' | 'onFault'> & { readonly resumable: boolean },
): AsyncGenerator<FeedBatch> {
  try {
    await sent;
    const elsewhere = yield* batches;
    if (!reader.aborted)
      yield [{ type: 'output', output: elsewhere ?? toPublicOutput(await output) }];
    else if (!resumable) throw abortError(reader);
  } catch (error) {
    if (!reader.aborted) {
      onFault(error);
      yield [{ type: 'error', error: toWireError(error) }];
    } else if (!resumable) yield [{ type: 'error', error: toWireError(abortError(reader)) }];
  }
}
