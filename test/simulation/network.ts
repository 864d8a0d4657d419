import type { SimulatedProcess } from './process.ts';
import type { Actor, Scheduler } from './scheduler.ts';

/** The network between clients and processes, as a `fetch`. */
export interface Network {
  readonly scheduler: Scheduler;
  /** A process that answers; `undefined` while there is none. */
  readonly pick: () => SimulatedProcess | undefined;
  /** The probability that a connection breaks at one of its frames. */
  readonly cut: () => number;
}

/** A `fetch` for one client: requests and the frames of responses are delayed, and connections break. */
export function simulatedFetch(network: Network, client: Actor): typeof fetch {
  const { scheduler, pick, cut } = network;
  return async (input, init) => {
    const request = new Request(input, init);
    await scheduler.pause(client, 'request');
    const process = pick();
    if (process === undefined || scheduler.random.chance(cut()))
      throw new TypeError('fetch failed');
    const response = await process
      .call(({ serve }) => serve(request))
      .catch(() => {
        throw new TypeError('fetch failed');
      });
    await scheduler.pause(client, 'response');
    if (scheduler.random.chance(cut())) {
      void response.body?.cancel();
      throw new TypeError('fetch failed');
    }
    const { status, headers } = response;
    if (response.body === null) return new Response(null, { status, headers });
    return new Response(frames(response.body, network, process, client), { status, headers });
  };
}

function frames(
  body: ReadableStream<Uint8Array>,
  { scheduler, cut }: Network,
  process: SimulatedProcess,
  client: Actor,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await process.call(() => reader.read());
          await scheduler.pause(client, 'frame');
          if (scheduler.random.chance(cut())) throw new TypeError('terminated');
          if (done) controller.close();
          else controller.enqueue(value);
        } catch {
          void reader.cancel().catch(() => {});
          controller.error(new TypeError('terminated'));
        }
      },
      cancel: () => reader.cancel(),
    },
    { highWaterMark: 0 },
  );
}
