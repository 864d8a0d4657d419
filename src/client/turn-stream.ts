import type { ApiInvokeOptions } from '../api/agent-api.ts';
import type { BegunTurn } from '../api/calls.ts';
import { describeOutput } from '../api/turn-values.ts';
import type { AgentTypes, ChunkOf, OutputOf, WireTypes } from '../api/types.ts';
import { Channel } from '../core/async/channel.ts';
import { WaymarkError } from '../core/error.ts';
import type { TurnRequest } from '../protocol/requests.ts';
import type { Init, Input } from '../protocol/turn.ts';
import { artifactQuery, followRun, ownTurnStart, type RunEvent } from './follow-run.ts';
import type { RemoteRunOptions } from './remote-agent.ts';
import { identified } from './request-id.ts';
import { steerRun, stopOnAbort } from './running-turn.ts';
import type { Transport } from './transport.ts';

/** An event for a reader of chunks; in order, so that a reset stands where it belongs. */
export type ReadEvent = Extract<RunEvent, { type: 'chunk' | 'reset' }>;

/** One turn over HTTP. The turn continues whether or not its chunks are read. */
export function streamTurn(
  transport: Transport,
  agent: string,
  given: Input,
  options: RemoteRunOptions = {},
): BegunTurn {
  const events = new Channel<ReadEvent>();
  const input = identified(given, options);
  const stop = stopOnAbort(transport, agent, options.signal);
  const started = Promise.withResolvers<string | undefined>();
  const { artifacts } = options;
  const start = {
    operation: 'runTurn',
    params: { agent },
    ...artifactQuery(artifacts),
    headers: { accept: 'text/event-stream' },
    body: { init: toInit(options), input } satisfies TurnRequest,
  } as const;

  const follow = async (): Promise<OutputOf<WireTypes>> => {
    const line = { agent, start, artifacts, requestId: input.requestId };
    for await (const event of followRun(transport, line, stop.cut)) {
      if (event.type === 'error') throw event.error;
      if (event.type === 'output') {
        events.close();
        return describeOutput(event.output);
      }
      const turn = event.type === 'chunk' ? ownTurnStart(event.chunk) : undefined;
      if (turn) {
        stop.started(turn.snapshotId);
        started.resolve(turn.snapshotId);
      }
      events.push(event);
    }
    throw new WaymarkError('INTERNAL', 'The stream ended without an output.');
  };
  const output = follow().finally(() => {
    started.resolve(undefined);
    stop.ended();
  });
  // A caller that only reads the chunks gets the failure there.
  output.catch((error: unknown) => events.fail(error));
  return {
    stream: chunksOf<WireTypes>(events, options.onReset),
    output,
    steer: async (message, request) =>
      await steerRun(transport, { agent, snapshot: await started.promise }, message, request),
  };
}

/** The chunks among the events. `onReset` is called in order, when the reader reaches the reset. */
export function chunksOf<Types extends AgentTypes>(
  events: AsyncIterable<ReadEvent>,
  onReset: ApiInvokeOptions['onReset'],
): AsyncIterable<ChunkOf<Types>> {
  return {
    async *[Symbol.asyncIterator]() {
      for await (const event of events) {
        if (event.type === 'reset') onReset?.(event.attempt, event);
        else yield event.chunk as ChunkOf<Types>;
      }
    },
  };
}

/** The part of the options that says where to start. What is not given is not part of its JSON. */
export function toInit<Types extends AgentTypes>(options: ApiInvokeOptions<Types>): Init {
  const { ifHead, from, snapshotId, sessionId, state } = options;
  // A snapshot or an output has been replaced by its id, and the server checks the custom state.
  return { ifHead, from, snapshotId, sessionId, state } as Init;
}
