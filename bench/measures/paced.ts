// G: streams at the speed of a real model. The server runs in another process; this one is its clients.
import { connect, type Socket } from 'node:net';
import type { Job } from '../job.ts';
import { clockMs, stampAt, stampMark } from '../lib/pace.ts';
import { cpuOf, type ServerProcess, startServer } from '../lib/server-process.ts';
import { type Stats, statsOf } from '../lib/stats.ts';
import { userText, xorshift } from '../lib/text.ts';

/** What so many streams at once take and get. */
export interface PacedLoad {
  readonly streams: number;
  /** Microseconds of the processor that the server used for a token, over whole turns: from their requests to their commits. */
  readonly cpuPerToken: Stats;
  /** The same, over that of the bare server in the round beside it. */
  readonly timesBare?: Stats;
  /** Tokens that arrived, of those that a server in time would have sent. */
  readonly arrived: number;
  /** Milliseconds from the model's emitting a token to the client's reading it. */
  readonly delay: { readonly p50: number; readonly p99: number };
}

export interface Paced {
  readonly paced: PacedLoad;
  /** More streams, for longer, served by two processes over one store: one for each core. */
  readonly hold?: PacedLoad;
}

export async function measure({ variant, place, scale }: Job): Promise<Paced> {
  const { streams, rounds, turns, hold, ...pace } = scale.paced;
  const { directory, postgres } = place;
  const started: ServerProcess[] = [];
  const start = async (name: string): Promise<ServerProcess> => {
    const server = await startServer(name, { directory, postgres, ...pace });
    started.push(server);
    return server;
  };
  const server = await start(variant);
  const bare = variant === 'bare' ? undefined : await start('bare');
  const every = pace.every;
  try {
    const load = { streams, turns };
    for (const warm of bare ? [server, bare] : [server]) await driveTurns(warm, load, 0);
    const driven: Driven[] = [];
    const ratios: number[] = [];
    for (let round = 1; round <= rounds; round++) {
      const own = await driveTurns(server, load, round);
      driven.push(own);
      if (bare) ratios.push(perToken(own) / perToken(await driveTurns(bare, load, round)));
    }
    const isHeld = hold !== undefined && (variant === 'bare' || variant.startsWith('waymark'));
    const held: Driven[] = [];
    if (hold !== undefined && isHeld) {
      const half = { ...hold, streams: hold.streams / 2, every };
      const both = [server, await start(variant)];
      held.push(...(await Promise.all(both.map((each, at) => driveWindow(each, half, at)))));
    }
    return {
      paced: loadOf(streams, driven, ratios),
      ...(hold && isHeld && { hold: loadOf(hold.streams, held, []) }),
    };
  } finally {
    for (const { child } of started) child.kill('SIGKILL');
  }
}

interface Driven {
  readonly tokens: number;
  readonly expected: number;
  /** Microseconds of the processor. */
  readonly cpu: number;
  readonly delays: readonly number[];
}

function perToken({ cpu, tokens }: Driven): number {
  return cpu / tokens;
}

function loadOf(streams: number, driven: readonly Driven[], ratios: readonly number[]): PacedLoad {
  const sum = (of: (driven: Driven) => number): number =>
    driven.reduce((total, each) => total + of(each), 0);
  const delays = driven.flatMap((each) => each.delays).sort((a, b) => a - b);
  const quantile = (at: number): number =>
    Number((delays[Math.floor(at * (delays.length - 1))] ?? Number.NaN).toFixed(2));
  return {
    streams,
    cpuPerToken: statsOf(driven.map(perToken)),
    ...(ratios.length > 0 && { timesBare: statsOf(ratios) }),
    arrived: Number((sum(({ tokens }) => tokens) / sum(({ expected }) => expected)).toFixed(4)),
    delay: { p50: quantile(0.5), p99: quantile(0.99) },
  };
}

/** Milliseconds over which the streams of a load are opened. */
const spreadMs = 1000;

/** Opens streams at random moments, so that their tokens do not come at the same ones. Resolves when all are open. */
async function openStreams(clients: Clients, streams: number, seed: number): Promise<void> {
  const random = xorshift(1 + seed);
  const moments = Array.from({ length: streams }, () => random(spreadMs * 100) / 100);
  const started = performance.now();
  for (const moment of moments.sort((a, b) => a - b)) {
    const left = started + moment - performance.now();
    if (left > 0) await wait(left);
    clients.open();
  }
}

/** Lets each stream run whole turns, and counts everything from the first request to the last commit. */
async function driveTurns(
  server: ServerProcess,
  { streams, turns }: { readonly streams: number; readonly turns: number },
  seed: number,
): Promise<Driven> {
  const clients = new Clients(server, turns);
  const cpuBefore = await cpuOf(server);
  await openStreams(clients, streams, seed);
  await clients.ended();
  const { tokens, delays } = clients;
  return { tokens, expected: tokens, cpu: (await cpuOf(server)) - cpuBefore, delays };
}

/** Counts the tokens that streams receive within some seconds, and lets the last answers end. */
async function driveWindow(
  server: ServerProcess,
  load: { readonly streams: number; readonly every: number; readonly seconds: number },
  seed: number,
): Promise<Driven> {
  const { streams, every, seconds } = load;
  const clients = new Clients(server, Number.POSITIVE_INFINITY);
  await openStreams(clients, streams, seed);
  // Until the last one has begun.
  await wait(300);
  const cpuBefore = await cpuOf(server);
  clients.reset();
  const started = performance.now();
  await wait(seconds * 1000);
  const { tokens, delays } = clients;
  const ms = performance.now() - started;
  const cpu = (await cpuOf(server)) - cpuBefore;
  clients.askNoMore();
  await clients.ended();
  return { tokens, expected: (streams * ms) / every, cpu, delays };
}

/** What a socket has just received. All share it: each reads it at once. */
const received = Buffer.alloc(64 * 1024);

/** Longest wait for the answers of a round. */
const endMs = 60_000;

/** Clients that ask for turn after turn. They read only what they count: they must not be what is measured. */
class Clients {
  readonly #server: ServerProcess;
  /** The open streams, with the turns that each has yet to ask for. */
  readonly #open = new Map<Socket, number>();
  readonly #turns: number;
  tokens = 0;
  delays: number[] = [];

  constructor(server: ServerProcess, turns: number) {
    this.#server = server;
    this.#turns = turns;
  }

  open(): void {
    const socket: Socket = connect({
      port: this.#server.port,
      host: '127.0.0.1',
      noDelay: true,
      onread: {
        buffer: received,
        callback: (length) => {
          this.#read(socket, received.subarray(0, length));
          return true;
        },
      },
    });
    this.#open.set(socket, this.#turns);
    socket.on('connect', () => this.#ask(socket));
    socket.on('error', () => {});
    socket.on('close', () => this.#open.delete(socket));
  }

  reset(): void {
    this.tokens = 0;
    this.delays = [];
  }

  /** Ends each stream with its current answer. */
  askNoMore(): void {
    for (const socket of this.#open.keys()) this.#open.set(socket, 0);
  }

  /** Resolves when all streams have ended; those that hang are cut. */
  async ended(): Promise<void> {
    const latest = performance.now() + endMs;
    while (this.#open.size > 0 && performance.now() < latest) await wait(50);
    for (const socket of this.#open.keys()) socket.destroy();
  }

  #ask(socket: Socket): void {
    this.#open.set(socket, (this.#open.get(socket) ?? 1) - 1);
    const { asked } = this.#server;
    const body = JSON.stringify(asked.body(userText()));
    const head = [
      `POST ${asked.path} HTTP/1.1`,
      'host: 127.0.0.1',
      'accept: text/event-stream',
      'content-type: application/json',
      `content-length: ${Buffer.byteLength(body)}`,
    ];
    socket.write(`${head.join('\r\n')}\r\n\r\n${body}`);
  }

  #read(socket: Socket, bytes: Buffer): void {
    const now = clockMs();
    for (let at = bytes.indexOf(stampMark); at >= 0; at = bytes.indexOf(stampMark, at + 1)) {
      this.tokens++;
      const stamp = stampAt(bytes, at);
      if (stamp !== undefined) this.delays.push(now - stamp);
    }
    // An answer ends with an empty chunk.
    if (bytes.length < 5 || bytes.toString('latin1', bytes.length - 5) !== '0\r\n\r\n') return;
    if ((this.#open.get(socket) ?? 0) > 0) this.#ask(socket);
    else socket.destroy();
  }
}

function wait(ms: number): Promise<unknown> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
