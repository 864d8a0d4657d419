// G: turns through HTTP. The server has a process of its own; this one is its clients.
import { Agent, request } from 'node:http';
import type { Job, Scale } from '../job.ts';
import { cpuOf, type ServerProcess, startServer } from '../lib/server-process.ts';
import { type Stats, statsOf } from '../lib/stats.ts';
import { pieceLength, userText } from '../lib/text.ts';
import type { Asked } from '../servers/server.ts';

/** What so many clients at once get. */
export interface Load {
  readonly clients: number;
  readonly chunksPerSecond: number;
  /** Microseconds of the processor that the server took for a chunk, which a busy machine does not change much. */
  readonly cpuPerChunk: number;
  /** Milliseconds until the first piece of an answer. */
  readonly firstChunk: Stats;
  /** What the bare server did in the same seconds. */
  readonly bare?: Beside;
}

/** A server beside the bare one: the two take turns, and each round gives one ratio. */
export interface Beside {
  /** Chunks per second, of those of the bare server. */
  readonly share: Stats;
  /** Milliseconds until the first piece that the bare server does not take. */
  readonly addedToFirst: Stats;
}

export interface Http {
  /** Answers of 20 pieces: the cost of a turn. */
  readonly turns: readonly Load[];
  /** Answers of 1,000 pieces: the cost of a piece. */
  readonly streams?: readonly Load[];
}

export async function measure({ variant, place, scale }: Job): Promise<Http> {
  const [usual = 0, long] = scale.http.pieces;
  const loads = (pieces: number): Promise<readonly Load[]> =>
    measureLoads({ variant, directory: place.directory, pieces }, scale);
  return {
    turns: await loads(usual),
    ...(long !== undefined && { streams: await loads(long) }),
  };
}

interface Wanted {
  readonly variant: string;
  readonly directory: string;
  readonly pieces: number;
}

async function measureLoads(wanted: Wanted, scale: Scale): Promise<readonly Load[]> {
  const { warmUp, http } = scale;
  const server = await start(wanted);
  const bare = wanted.variant === 'bare' ? undefined : await start({ ...wanted, variant: 'bare' });
  try {
    await drive({ ...server, clients: 50, seconds: warmUp / 1000 });
    if (bare) await drive({ ...bare, clients: 50, seconds: warmUp / 3000 });
    const found: Load[] = [];
    for (const clients of http.clients) found.push(await measureLoad(server, bare, clients, http));
    return found;
  } finally {
    server.child.kill('SIGKILL');
    bare?.child.kill('SIGKILL');
  }
}

async function measureLoad(
  server: Server,
  bare: Server | undefined,
  clients: number,
  { rounds, seconds }: Scale['http'],
): Promise<Load> {
  const own: Driven[] = [];
  const shares: number[] = [];
  const added: number[] = [];
  // Many clients of a slow server need more than a round for one answer each.
  const enough = performance.now() + 4 * rounds * seconds * 1000;
  for (let at = 0; at < rounds && (at === 0 || performance.now() < enough); at++) {
    const driven = await drive({ ...server, clients, seconds });
    own.push(driven);
    if (!bare) continue;
    const beside = await drive({ ...bare, clients, seconds });
    shares.push(rateOf(driven) / rateOf(beside));
    added.push(statsOf(driven.firsts).median - statsOf(beside.firsts).median);
  }
  const sum = (of: (driven: Driven) => number): number =>
    own.reduce((total, driven) => total + of(driven), 0);
  return {
    clients,
    chunksPerSecond: Math.round(statsOf(own.map(rateOf)).median),
    cpuPerChunk: Number((sum(({ cpu }) => cpu) / sum(({ chunks }) => chunks)).toFixed(2)),
    firstChunk: statsOf(own.flatMap(({ firsts }) => firsts)),
    ...(bare && { bare: { share: statsOf(shares), addedToFirst: statsOf(added) } }),
  };
}

interface Server extends ServerProcess {
  readonly pieces: number;
}

async function start({ variant, directory, pieces }: Wanted): Promise<Server> {
  return { ...(await startServer(variant, { directory, pieces })), pieces };
}

interface Drive extends Server {
  readonly clients: number;
  readonly seconds: number;
}

interface Driven {
  readonly chunks: number;
  readonly ms: number;
  /** Microseconds of the processor. */
  readonly cpu: number;
  readonly firsts: readonly number[];
}

function rateOf({ chunks, ms }: Driven): number {
  return (1000 * chunks) / ms;
}

/** Lets clients ask for turn after turn, each on a new session. */
async function drive({ port, child, asked, pieces, clients, seconds }: Drive): Promise<Driven> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const firsts: number[] = [];
  const cpuBefore = await cpuOf({ child });
  const started = performance.now();
  const end = started + seconds * 1000;
  let chunks = 0;
  let last = started;
  const client = async (): Promise<void> => {
    while (performance.now() < end) {
      firsts.push(await turn({ agent, port, asked, pieces }));
      chunks += pieces;
      last = performance.now();
    }
  };
  await Promise.all(Array.from({ length: clients }, client));
  agent.destroy();
  return { chunks, ms: last - started, cpu: (await cpuOf({ child })) - cpuBefore, firsts };
}

/** One turn; resolves to the milliseconds until its first piece. */
function turn(call: {
  readonly agent: Agent;
  readonly port: number;
  readonly asked: Asked;
  readonly pieces: number;
}): Promise<number> {
  const { agent, port, asked, pieces } = call;
  const headers = { accept: 'text/event-stream', 'content-type': 'application/json' };
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const asking = request(
      { agent, port, host: '127.0.0.1', method: 'POST', path: asked.path, headers },
      (response) => {
        let first: number | undefined;
        let length = 0;
        response.on('data', (piece: Buffer) => {
          length += piece.length;
          if (first === undefined && piece.includes(asked.marker)) {
            first = performance.now() - started;
          }
        });
        response.on('error', reject);
        response.on('end', () => {
          const isWhole = response.statusCode === 200 && length > pieces * pieceLength;
          if (first !== undefined && isWhole) resolve(first);
          else reject(new Error(`Answered ${response.statusCode} with ${length} bytes.`));
        });
      },
    );
    asking.on('error', reject);
    asking.end(JSON.stringify(asked.body(userText())));
  });
}
