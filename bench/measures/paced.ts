// G: streams at the speed of a real model. The server runs in another process; this one is its clients.
import { connect, type Socket } from 'node:net';
import type { Job, Scale } from '../job.ts';
import { clockMs, stampAt, stampMark } from '../lib/pace.ts';
import { cpuOf, type ServerProcess, startServer } from '../lib/server-process.ts';
import { type Stats, statsOf } from '../lib/stats.ts';
import { userText } from '../lib/text.ts';

/** What so many streams at once take and get. */
export interface PacedLoad {
  readonly streams: number;
  /** Microseconds of the processor that the server used for a token. */
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
  const { streams, rounds, seconds, hold, ...pace } = scale.paced;
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
    for (const warm of bare ? [server, bare] : [server])
      await drive(warm, { streams, every, seconds: scale.warmUp / 1500 });
    const driven: Driven[] = [];
    const ratios: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const own = await drive(server, { streams, every, seconds });
      driven.push(own);
      if (bare)
        ratios.push(perToken(own) / perToken(await drive(bare, { streams, every, seconds })));
    }
    const isHeld = hold !== undefined && (variant === 'bare' || variant.startsWith('waymark'));
    const held: Driven[] = [];
    if (hold !== undefined && isHeld) {
      const half = { ...hold, streams: hold.streams / 2, every };
      const both = [server, await start(variant)];
      held.push(...(await Promise.all(both.map((each) => drive(each, half)))));
    }
    return {
      paced: loadOf(streams, driven, ratios),
      ...(hold && isHeld && { hold: loadOf(hold.streams, held, []) }),
    };
  } finally {
    for (const { child } of started) child.kill('SIGKILL');
  }
}

type Drive = Pick<Scale['paced'], 'streams' | 'every' | 'seconds'>;

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

/** Opens so many streams, spread over a second, counts the tokens of so many seconds, and lets the last answers end. */
async function drive(server: ServerProcess, { streams, every, seconds }: Drive): Promise<Driven> {
  const clients = new Clients(server);
  for (let at = 0; at < streams; at++) {
    if (at % Math.ceil(streams / 50) === 0) await wait(20);
    clients.open();
  }
  // Until the last one has begun.
  await wait(300);
  const cpuBefore = await cpuOf(server);
  clients.reset();
  const started = performance.now();
  await wait(seconds * 1000);
  const { tokens, delays } = clients;
  const ms = performance.now() - started;
  const cpu = (await cpuOf(server)) - cpuBefore;
  await clients.end();
  return { tokens, expected: (streams * ms) / every, cpu, delays };
}

/** What a socket has just received. All share it: each reads it at once. */
const received = Buffer.alloc(64 * 1024);

/** Longest wait for the last answers of a round. */
const endMs = 20_000;

/** Clients that ask for turn after turn. They read only what they count: they must not be what is measured. */
class Clients {
  readonly #server: ServerProcess;
  readonly #open = new Set<Socket>();
  #isAsking = true;
  tokens = 0;
  delays: number[] = [];

  constructor(server: ServerProcess) {
    this.#server = server;
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
    this.#open.add(socket);
    socket.on('connect', () => this.#ask(socket));
    socket.on('error', () => {});
    socket.on('close', () => this.#open.delete(socket));
  }

  reset(): void {
    this.tokens = 0;
    this.delays = [];
  }

  async end(): Promise<void> {
    this.#isAsking = false;
    const latest = performance.now() + endMs;
    while (this.#open.size > 0 && performance.now() < latest) await wait(50);
    for (const socket of this.#open) socket.destroy();
  }

  #ask(socket: Socket): void {
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
    if (this.#isAsking) this.#ask(socket);
    else socket.destroy();
  }
}

function wait(ms: number): Promise<unknown> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
