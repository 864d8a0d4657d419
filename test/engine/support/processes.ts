import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { ChildOptions } from './child.ts';

/** A process of the tests' own. */
export interface Child {
  readonly pid: number;
  /** Where it serves; empty for a worker. */
  readonly url: string;
  kill(signal: NodeJS.Signals): void;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
}

const script = fileURLToPath(new URL('./child.ts', import.meta.url));
const running = new Set<ChildProcess>();

/** Starts a process, and resolves when it is ready. */
export async function startChild(options: ChildOptions): Promise<Child> {
  const child = spawn(process.execPath, [script, JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  running.add(child);
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => {
      running.delete(child);
      resolve();
    });
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`The process ended with ${code}.`)));
    child.stdout.on('data', (data: Buffer) => {
      const [, at] = /^ready (.*)$/m.exec(data.toString()) ?? [];
      if (at !== undefined) resolve(at);
    });
  });
  return { pid: child.pid ?? 0, url, ended, kill: (signal) => void child.kill(signal) };
}

/** Ends whatever a test has left running. */
export async function endChildren(): Promise<void> {
  const left = [...running];
  for (const child of left) {
    child.kill('SIGCONT');
    child.kill('SIGKILL');
  }
  await Promise.all(left.map((child) => new Promise((resolve) => child.once('exit', resolve))));
}
