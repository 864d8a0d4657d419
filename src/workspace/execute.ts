import { type ChildProcess, spawn } from 'node:child_process';
import { throwIfAborted } from '../core/async/signal.ts';
import type { ExecuteOptions, ExecuteResult } from './contract/contract.ts';
import { pathError } from './errors.ts';

const isWindows = process.platform === 'win32';

/** The variables that a command gets: the others of this process may be secrets. */
const passedOn =
  /^(path|home|user|logname|shell|lang|lc_\w+|tz|tmpdir|temp|tmp|term|systemroot|systemdrive|comspec|pathext|windir|userprofile|appdata|localappdata|programfiles.*|programdata|number_of_processors)$/i;

/**
 * Runs a command in a shell, in a new process group. All of its processes end with it, also those that it has left in the
 * background: none of them changes files after its result.
 */
export async function execute(
  command: string,
  options: ExecuteOptions & { readonly cwd: string; readonly workspace: string },
): Promise<ExecuteResult> {
  const { signal, timeoutMs, maxOutputBytes, env = {}, cwd, workspace } = options;
  throwIfAborted(signal);
  const child = start(command, { cwd, env: { ...ownEnvironment(), ...env } });
  const output = new BoundedOutput(maxOutputBytes);
  child.stdout?.on('data', (piece: Buffer) => output.add(piece));
  child.stderr?.on('data', (piece: Buffer) => output.add(piece));
  let timedOut = false;
  const stop = (): void => endGroup(child);
  const timer = setTimeout(() => {
    timedOut = true;
    stop();
  }, timeoutMs);
  signal.addEventListener('abort', stop, { once: true });
  try {
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', () => {
        stop();
        // A process that has left the group may still have the output open.
        setTimeout(() => child.stdout?.destroy(), 1_000).unref();
      });
      child.once('close', resolve);
    });
    throwIfAborted(signal);
    return { exitCode, timedOut, ...output.result() };
  } catch (error) {
    throw pathError(error, '', workspace);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}

function start(
  command: string,
  { cwd, env }: { readonly cwd: string; readonly env: NodeJS.ProcessEnv },
): ChildProcess {
  if (isWindows)
    return spawn(command, {
      cwd,
      env,
      shell: true,
      windowsHide: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  // One pipe for both outputs, which keeps their order.
  return spawn('/bin/sh', ['-c', `exec 2>&1\n${command}`], {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
}

/** Kills a process with all that it has started. */
export function endGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    if (isWindows) spawn('taskkill', ['/pid', String(pid), '/T', '/F'], { stdio: 'ignore' });
    else process.kill(-pid, 'SIGKILL');
  } catch {
    // All of them have ended.
  }
}

/** The variables of this process that commands get. */
export function ownEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => passedOn.test(name)));
}

/** The beginning and the end of an output. */
class BoundedOutput {
  readonly #max: number;
  #head: Buffer[] = [];
  #headBytes = 0;
  #tail = Buffer.alloc(0);
  #cut = 0;

  constructor(max: number) {
    this.#max = max;
  }

  add(piece: Buffer): void {
    const half = Math.ceil(this.#max / 2);
    const forHead = piece.subarray(0, Math.max(0, half - this.#headBytes));
    if (forHead.length > 0) this.#head.push(forHead);
    this.#headBytes += forHead.length;
    const tail = Buffer.concat([this.#tail, piece.subarray(forHead.length)]);
    const excess = Math.max(0, tail.length - (this.#max - half));
    this.#cut += excess;
    this.#tail = tail.subarray(excess);
  }

  result(): { readonly output: string; readonly cut: number } {
    const head = Buffer.concat(this.#head).toString('utf8');
    const gap = this.#cut === 0 ? '' : `\n[… ${this.#cut} bytes cut …]\n`;
    return { output: `${head}${gap}${this.#tail.toString('utf8')}`, cut: this.#cut };
  }
}
