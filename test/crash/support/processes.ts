import { type ChildProcess, spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { WorkerOptions } from '../crash-worker.ts';

/** A worker process of the tests' own. */
export interface Worker {
  readonly pid: number;
  /** Gives it a command. */
  say(line: string): void;
  /** The next line that begins with this word, without the word. Rejects when the process ends before, or it takes too long. */
  hear(word: string, ms?: number): Promise<string>;
  /** kill -9, or another signal; resolves when it has ended. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  readonly ended: Promise<void>;
}

const script = fileURLToPath(new URL('../crash-worker.ts', import.meta.url));
const running = new Set<Worker>();

/** Starts a process, whose files may not become larger than so. It is of use as soon as it has said `ready`. */
export function startWorker(
  options: WorkerOptions,
  { fileKilobytes }: { readonly fileKilobytes?: number } = {},
): Worker {
  const limit = fileKilobytes === undefined ? '' : `ulimit -f ${fileKilobytes} && `;
  const command = `${limit}exec "$0" "$@"`;
  const args = ['-c', command, process.execPath, script, JSON.stringify(options)];
  const child = spawn('bash', args, {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: { ...process.env, NODE_COMPILE_CACHE: join(dirname(options.journal), 'cache') },
  });
  // The process may be gone when it is told something.
  child.stdin.on('error', () => {});
  const { hear, ended } = listenTo(child);
  const worker: Worker = {
    pid: child.pid ?? 0,
    say: (line) => void child.stdin.write(`${line}\n`),
    hear,
    ended,
    async kill(signal = 'SIGKILL') {
      child.kill(signal);
      await ended;
    },
  };
  running.add(worker);
  void ended.then(() => running.delete(worker));
  return worker;
}

function listenTo(child: ChildProcess): Pick<Worker, 'hear' | 'ended'> {
  const heard: string[] = [];
  const waiting = new Set<() => void>();
  let isOver = false;
  const look = (): void => {
    for (const each of [...waiting]) each();
  };
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => {
      isOver = true;
      resolve();
      look();
    });
  });
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on('line', (line) => {
      heard.push(line);
      look();
    });
  }
  const hear = (word: string, ms = 20_000): Promise<string> =>
    new Promise((resolve, reject) => {
      const settle = (end: () => void): void => {
        clearTimeout(timer);
        waiting.delete(check);
        end();
      };
      const check = (): void => {
        const at = heard.findIndex((line) => line === word || line.startsWith(`${word} `));
        const failure = heard.find((line) => line.startsWith('failed '));
        if (at >= 0) {
          const [line = ''] = heard.splice(at, 1);
          settle(() => resolve(line.slice(word.length + 1)));
        } else if (failure !== undefined || isOver) {
          settle(() => reject(new Error(`No "${word}": ${failure ?? 'the process has ended'}`)));
        }
      };
      const timer = setTimeout(
        () => settle(() => reject(new Error(`No "${word}" within ${ms} ms`))),
        ms,
      );
      waiting.add(check);
      check();
    });
  return { hear, ended };
}

/** Ends whatever a test has left running. */
export async function endWorkers(): Promise<void> {
  await Promise.all([...running].map((worker) => worker.kill()));
}
