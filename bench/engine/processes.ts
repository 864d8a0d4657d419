import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** A worker process of the benchmark. */
export interface WorkerProcess {
  readonly process: ChildProcess;
  /** When it said this next, in milliseconds of the epoch. Ask before it can say so. */
  next(what: string): Promise<number>;
}

/** Milliseconds of the epoch, finer than a clock for dates. */
export const now = (): number => performance.timeOrigin + performance.now();

/** Starts a worker of our engine, or of plain pg-boss, and waits until it works. */
export async function startWorker(
  connectionString: string,
  kind: 'waymark' | 'plain',
): Promise<WorkerProcess> {
  const script = fileURLToPath(new URL('./worker.ts', import.meta.url));
  const child = spawn(process.execPath, [script, connectionString, kind], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const waiting = new Map<string, (at: number) => void>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [what = '', at] = line.split(' ');
    waiting.get(what)?.(Number(at));
    waiting.delete(what);
  });
  const next = (what: string): Promise<number> =>
    new Promise((resolve) => waiting.set(what, resolve));
  await next('ready');
  return { process: child, next };
}
