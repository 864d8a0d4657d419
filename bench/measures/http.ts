// G: turns through HTTP. The server has a process of its own; this one is its clients.
import { type ChildProcess, fork } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { join } from 'node:path';
import type { Job } from '../job.ts';
import { type Stats, statsOf } from '../lib/stats.ts';
import { pieceLength, userText } from '../lib/text.ts';
import { type Asked, servers } from '../servers/server.ts';

/** What so many clients at once get. */
export interface Load {
  readonly clients: number;
  readonly chunksPerSecond: number;
  /** Microseconds of the processor that the server took for a chunk, which a busy machine does not change much. */
  readonly cpuPerChunk: number;
  /** Milliseconds until the first piece of an answer. */
  readonly firstChunk: Stats;
}

export interface Http {
  /** Answers of 20 pieces: the cost of a turn. */
  readonly turns: readonly Load[];
  /** Answers of 1,000 pieces: the cost of a piece. */
  readonly streams?: readonly Load[];
}

export async function measure({ variant, place, scale }: Job): Promise<Http> {
  const asked = servers[variant];
  if (asked === undefined) throw new Error(`No server "${variant}".`);
  const { clients, seconds } = scale.http;
  const loads = async (pieces: number): Promise<readonly Load[]> => {
    const server = await start(variant, place.directory, pieces);
    try {
      await drive({ ...server, asked, pieces, clients: 50, seconds: scale.warmUp / 1000 });
      const found: Load[] = [];
      for (const count of clients) {
        found.push(await drive({ ...server, asked, pieces, clients: count, seconds }));
      }
      return found;
    } finally {
      server.child.kill('SIGKILL');
    }
  };
  const [usual = 0, long] = scale.http.pieces;
  return {
    turns: await loads(usual),
    ...(long !== undefined && { streams: await loads(long) }),
  };
}

interface Server {
  readonly child: ChildProcess;
  readonly port: number;
}

async function start(name: string, directory: string, pieces: number): Promise<Server> {
  const own = join(directory, `${name}-${pieces}`);
  mkdirSync(own, { recursive: true });
  const program = join(import.meta.dirname, '../server-child.ts');
  const child = fork(program, [name, own, `${pieces}`], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const port = await new Promise<number>((resolve, reject) => {
    child.once('message', (message: { port: number }) => resolve(message.port));
    child.once('exit', (code) => reject(new Error(`The server ended with ${code}.`)));
  });
  return { child, port };
}

interface Drive extends Server {
  readonly asked: Asked;
  readonly pieces: number;
  readonly clients: number;
  readonly seconds: number;
}

/** Lets clients ask for turn after turn, each on a new session. */
async function drive({ port, child, asked, pieces, clients, seconds }: Drive): Promise<Load> {
  const agent = new Agent({ keepAlive: true, maxSockets: clients });
  const firsts: number[] = [];
  const cpuBefore = await cpuOf(child);
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
  return {
    clients,
    cpuPerChunk: Number((((await cpuOf(child)) - cpuBefore) / chunks).toFixed(2)),
    chunksPerSecond: Math.round(chunks / ((last - started) / 1000)),
    firstChunk: statsOf(firsts),
  };
}

function cpuOf(child: ChildProcess): Promise<number> {
  return new Promise((resolve) => {
    child.once('message', ({ cpu }: { readonly cpu: number }) => resolve(cpu));
    child.send('cpu');
  });
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
