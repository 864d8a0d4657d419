// What serving costs: `node bench/micro/server.ts`. The server runs in a process of its own, next to a bare Node server that
// writes the same bytes, so that both see the same machine in the same minute.
import { type ChildProcess, fork } from 'node:child_process';
import { createServer, Agent as HttpAgent, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { memoryStore, waymark } from '../../src/index.ts';
import { serve } from '../../src/server/index.ts';

interface Measure {
  readonly ms: number;
  readonly bytes: number;
  readonly events: number;
  /** Milliseconds until the first bytes of its body. */
  readonly first: number;
}

const sockets = new HttpAgent({ keepAlive: true, maxSockets: 1000 });

if (process.argv[2] === 'waymark') await runWaymark();
else if (process.argv[2] === 'bare') await runBare();
else await runBench();

async function runWaymark(): Promise<void> {
  const app = waymark({ store: memoryStore() });
  app.defineCustomAgent({ name: 'pieces' }, async (session, { respond }) => {
    await session.run(async (input, { signal }) => {
      const part = input.message?.content[0];
      const count = part && 'text' in part ? Number(part.text) : 0;
      for (let at = 0; at < count; at++) {
        await respond.modelChunk({ role: 'model', content: [{ text: `piece ${at} ` }] });
      }
      // A negative count: a turn that never ends, for connections that wait.
      if (count < 0) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      session.addMessages({ role: 'model', content: [{ text: `${count} pieces` }] });
    });
  });
  const { port } = await serve(app, { port: 0, log: () => {}, limits: { streams: 20_000 } });
  process.on('message', async (message) => {
    if (message === 'memory') process.send?.({ memory: memoryAfterCollection() });
    if (message === 'inProcess')
      process.send?.({ inProcess: await inProcess(app.agent('pieces')) });
  });
  answerCpu();
  process.send?.({ port });
}

// The same turns without a server, for what the server adds.
async function inProcess(agent: ReturnType<ReturnType<typeof waymark>['agent']>): Promise<number> {
  const times: number[] = [];
  for (let at = 0; at < 300; at++) {
    const started = performance.now();
    await agent.run(inputOf('10'), { accept: true });
    times.push(performance.now() - started);
  }
  return quantile(times, 0.5);
}

async function runBare(): Promise<void> {
  const server = createServer(async (incoming, response) => {
    let body = '';
    for await (const piece of incoming) body += piece;
    const count = Number(JSON.parse(body).input.message.content[0].text);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (let at = 0; at < count; at++) {
      const data = JSON.stringify({
        modelChunk: { role: 'model', content: [{ text: `piece ${at} ` }] },
      });
      if (response.write(`event: chunk\nid: 1.${at}\ndata: ${data}\n\n`)) continue;
      await new Promise((resolve) => response.once('drain', resolve));
    }
    response.end('event: output\ndata: {}\n\n');
  });
  answerCpu();
  server.listen(0, '127.0.0.1', () =>
    process.send?.({ port: (server.address() as AddressInfo).port }),
  );
}

// Time on the clock says little on a machine that others use; time on the processor does not mind them.
function answerCpu(): void {
  process.on('disconnect', () => process.exit());
  process.on('message', (message) => {
    const { user, system } = process.cpuUsage();
    if (message === 'cpu') process.send?.({ cpu: user + system });
  });
}

async function runBench(): Promise<void> {
  const ours = await start('waymark');
  const bare = await start('bare');
  try {
    await warmUp(ours, bare);
    await idle(ours);
    await throughput(ours, bare);
    await firstChunk(ours, bare);
    await turns(ours);
  } finally {
    for (const { child } of [ours, bare]) child.kill();
  }
}

async function warmUp(...servers: readonly Started[]): Promise<void> {
  for (const server of servers) for (let at = 0; at < 20; at++) await turn(server, '500');
}

async function throughput(ours: Started, bare: Started): Promise<void> {
  print('Chunks per second of one process');
  for (const [streams, chunks] of [
    [1, 100_000],
    [50, 2_000],
    [500, 200],
  ] as const) {
    const rates: Record<string, number[]> = { ours: [], bare: [] };
    const cpu: Record<string, number> = { ours: 0, bare: 0 };
    const rounds = 5;
    for (let round = 0; round < rounds; round++) {
      for (const [name, server] of Object.entries({ ours, bare })) {
        const cpuBefore = await server.ask<number>('cpu');
        const started = performance.now();
        const results = await Promise.all(
          Array.from({ length: streams }, () => turn(server, `${chunks}`)),
        );
        const events = results.reduce((sum, result) => sum + result.events, 0);
        rates[name]?.push((events / (performance.now() - started)) * 1000);
        cpu[name] = (cpu[name] ?? 0) + (await server.ask<number>('cpu')) - cpuBefore;
      }
    }
    const [mine, theirs] = [quantile(rates.ours ?? [], 0.5), quantile(rates.bare ?? [], 0.5)];
    const [myCpu, theirCpu] = [cpu.ours ?? 0, cpu.bare ?? 0];
    const perChunk = (total: number): string => (total / (rounds * streams * chunks)).toFixed(1);
    const percent = (part: number, whole: number): string =>
      `${Math.round((part / whole) * 100)} %`;
    print(
      `  ${streams} × ${chunks}: waymark ${round(mine)}/s (${perChunk(myCpu)} µs of processor time each), ` +
        `bare Node ${round(theirs)}/s (${perChunk(theirCpu)} µs): ` +
        `${percent(mine, theirs)} by the clock, ${percent(theirCpu, myCpu)} by the processor`,
    );
  }
}

// Until the first chunk is there, one turn at a time.
async function firstChunk(ours: Started, bare: Started): Promise<void> {
  const first = async (server: Started): Promise<string> => {
    const times: number[] = [];
    for (let at = 0; at < 500; at++) times.push((await turn(server, '10')).first);
    return `p50 ${quantile(times, 0.5).toFixed(2)} ms, p95 ${quantile(times, 0.95).toFixed(2)} ms`;
  };
  print(`First chunk: waymark ${await first(ours)}; bare Node ${await first(bare)}`);
}

async function turns(ours: Started): Promise<void> {
  const alone = await ours.ask<number>('inProcess');
  print(`Turns of 10 chunks (in process: p50 ${alone.toFixed(2)} ms)`);
  for (const concurrent of [1, 50, 500]) {
    const total = concurrent === 1 ? 500 : 3000;
    const times: number[] = [];
    let left = total;
    const started = performance.now();
    const worker = async (): Promise<void> => {
      while (left-- > 0) times.push((await turn(ours, '10')).ms);
    };
    await Promise.all(Array.from({ length: concurrent }, worker));
    const perSecond = (total / (performance.now() - started)) * 1000;
    const [p50, p95] = [quantile(times, 0.5), quantile(times, 0.95)];
    print(
      `  ${concurrent} at once: ${round(perSecond)} turns/s, p50 ${p50.toFixed(2)} ms, p95 ${p95.toFixed(2)} ms`,
    );
  }
}

async function idle(ours: Started): Promise<void> {
  const count = 1000;
  const runId = await new Promise<string>((resolve) => {
    const asking = request(optionsOf(ours), (response) => {
      response.once('data', (piece) =>
        resolve(/"snapshotId":"([^"]+)"/.exec(String(piece))?.[1] ?? ''),
      );
    });
    asking.end(JSON.stringify({ input: inputOf('-1') }));
  });
  const before = await ours.ask<Memory>('memory');
  const path = `/agents/pieces/snapshots/${runId}/events`;
  await Promise.all(
    Array.from(
      { length: count },
      () =>
        new Promise<void>((resolve, reject) => {
          request({ port: ours.port, host: '127.0.0.1', path }, (response) => {
            response.once('data', () => resolve());
          })
            .on('error', reject)
            .end();
        }),
    ),
  );
  const after = await ours.ask<Memory>('memory');
  const kb = (field: keyof Memory): string =>
    ((after[field] - before[field]) / count / 1024).toFixed(1);
  print(`Memory per idle stream, of ${count}: heap ${kb('heap')} KB, process ${kb('rss')} KB`);
}

interface Memory {
  readonly heap: number;
  readonly rss: number;
}

interface Started {
  readonly child: ChildProcess;
  readonly port: number;
  ask<T>(what: string): Promise<T>;
}

async function start(which: string): Promise<Started> {
  const child = fork(import.meta.filename, [which], { execArgv: ['--expose-gc'] });
  const next = <T>(name: string): Promise<T> =>
    new Promise((resolve) => {
      child.once('message', (message) => resolve((message as Record<string, T>)[name] as T));
    });
  const port = await next<number>('port');
  return {
    child,
    port,
    ask: (what) => {
      const answer = next<never>(what);
      child.send(what);
      return answer;
    },
  };
}

function optionsOf({ port }: Started): object {
  return {
    port,
    host: '127.0.0.1',
    agent: sockets,
    method: 'POST',
    path: '/agents/pieces/turns',
    headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
  };
}

function turn(server: Started, text: string): Promise<Measure> {
  const started = performance.now();
  return new Promise((resolve, reject) => {
    const asking = request(optionsOf(server), (response) => {
      let bytes = 0;
      let events = 0;
      let last = 0;
      let first = 0;
      response.on('data', (piece: Buffer) => {
        first ||= performance.now() - started;
        bytes += piece.length;
        for (const byte of piece) {
          // An event ends with two line breaks.
          if (byte === 10 && last === 10) events++;
          last = byte;
        }
      });
      response.on('end', () => resolve({ ms: performance.now() - started, bytes, events, first }));
      response.on('error', reject);
    });
    asking.on('error', reject);
    asking.end(JSON.stringify({ input: inputOf(text) }));
  });
}

function inputOf(text: string): { message: { role: 'user'; content: { text: string }[] } } {
  return { message: { role: 'user', content: [{ text }] } };
}

function memoryAfterCollection(): Memory {
  for (let at = 0; at < 3; at++) globalThis.gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  return { heap: heapUsed, rss };
}

function quantile(values: readonly number[], at: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * at))] ?? 0;
}

function round(value: number): string {
  return Math.round(value).toLocaleString('en');
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
