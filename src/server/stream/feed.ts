import { internalsOf } from '../../agent/define/create-agent.ts';
import type { Agent } from '../../agent/spec/agent.ts';
import { scopeOf } from '../../agent/spec/spec.ts';
import { outputOfRun } from '../../agent/turn/join.ts';
import type { ErrorBody } from '../../core/error.ts';
import { outputOfSnapshot } from '../../protocol/snapshot-output.ts';
import type { Chunk, Output, Reset } from '../../protocol/turn.ts';
import { toWireError } from '../http/error-response.ts';
import { notFound } from '../http/not-found.ts';

/** What a dialect puts on the wire for a turn. `output` and `error` are final. */
export type FeedEvent =
  | { readonly type: 'chunk'; readonly id?: string; readonly chunk: Chunk }
  | ({ readonly type: 'reset'; readonly id: string } & Readonly<Reset>)
  | { readonly type: 'output'; readonly output: Output }
  | { readonly type: 'error'; readonly error: ErrorBody };

/** Events that came together; passing them on one by one would cost more than what they say. */
export type FeedBatch = readonly FeedEvent[];

/** Who follows, and for how long. */
export interface FollowOptions {
  readonly owner?: string;
  /** Aborts when the reader has left, or the server ends; the feed then ends without a final event. */
  readonly reader: AbortSignal;
  /** The request id of the turn: its output is then what the turn gave, which may be more than its snapshot tells. */
  readonly requestId?: string | undefined;
  /** Hears what an `error` event does not say. */
  readonly onFault?: (error: unknown) => void;
}

/** The events of a run from `after` on, and its output. Ends without a final event only when the reader has left. */
export async function* runFeed(
  agent: Agent,
  runId: string,
  options: FollowOptions & { readonly after?: string },
): AsyncGenerator<FeedBatch> {
  try {
    for await (const event of watchRun(agent, runId, options)) yield [event];
  } catch (error) {
    if (options.reader.aborted) return;
    options.onFault?.(error);
    yield [{ type: 'error', error: toWireError(error) }];
  }
}

/** As {@link runFeed}, one by one, and failures are thrown. */
export async function* watchRun(
  agent: Agent,
  runId: string,
  { after, reader, requestId, owner: of }: FollowOptions & { readonly after?: string },
): AsyncGenerator<FeedEvent> {
  const options = {
    ...(of !== undefined && { owner: of }),
    signal: reader,
    ...(after !== undefined && { after }),
  };
  for await (const event of agent.watch(runId, options)) {
    if (reader.aborted) return;
    switch (event.type) {
      case 'chunk':
        yield { type: 'chunk', id: event.id, chunk: event.chunk as Chunk };
        break;
      case 'reset':
        yield event;
        break;
      case 'end':
        yield {
          type: 'output',
          output: (await given(agent, runId, of, requestId)) ?? outputOfSnapshot(event.snapshot),
        };
        return;
    }
  }
  // Never known, or erased meanwhile.
  if (!reader.aborted) throw notFound('snapshot', runId);
}

async function given(
  agent: Agent,
  runId: string,
  owner: string | undefined,
  requestId: string | undefined,
): Promise<Output | undefined> {
  if (requestId === undefined) return undefined;
  const { spec } = internalsOf(agent);
  return await outputOfRun({ spec, scope: scopeOf(spec, owner) }, runId, requestId);
}
