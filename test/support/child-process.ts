import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';

/** How a process ended. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A child process of a test. It reports on its standard output, line by line. */
export interface TestProcess {
  readonly pid: number;
  /** Its output so far, without the lines that {@link TestProcess.take} returned. */
  readonly lines: readonly string[];
  /** Its standard error so far. */
  readonly stderr: string;
  /** Writes a line to its standard input. */
  send(line: string): void;
  /** Ends its standard input. */
  closeInput(): void;
  /** Removes and returns the first line for which `pick` returns a value; rejects if the process ends before that. */
  take<Value>(pick: (line: string) => Value | undefined, what?: string): Promise<Value>;
  /** Calls `read` after each output until it returns a value; rejects if the process ends before that. */
  when<Value>(read: () => Value | undefined, what: string): Promise<Value>;
  /** Resolves as soon as its standard error matches; rejects if the process ends before that. */
  says(pattern: RegExp): Promise<void>;
  /** Sends a signal and resolves when the process has ended. @default 'SIGKILL' */
  end(signal?: NodeJS.Signals): Promise<Exit>;
  /** Sends a signal that does not end the process, such as SIGSTOP. */
  signal(signal: NodeJS.Signals): void;
  /** Resolves when the process has ended, for whatever reason. */
  readonly ended: Promise<Exit>;
  /** Resolves when the process has ended by itself, without an error. */
  finished(): Promise<void>;
}

export interface ProcessOptions {
  /** @default process.execPath */
  readonly command?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** The process cannot write files larger than this. */
  readonly fileKilobytes?: number;
  /** Whether the process may die. @default false: an unexpected end fails the test */
  readonly mayDie?: boolean;
}

const running = new Set<TestProcess>();
const failures: Error[] = [];

/** Starts a process, by default Node with these arguments. */
export function startProcess(args: readonly string[], options: ProcessOptions = {}): TestProcess {
  const { command = process.execPath, env, cwd, fileKilobytes, mayDie = false } = options;
  const limited =
    fileKilobytes === undefined
      ? ([command, args] as const)
      : ([
          'bash',
          ['-c', `ulimit -f ${fileKilobytes} && exec "$0" "$@"`, command, ...args],
        ] as const);
  const child = spawn(...limited, {
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(cwd !== undefined && { cwd }),
    env: { ...process.env, ...env },
  });
  const made = follow(child, [command, ...args].join(' '), mayDie);
  running.add(made.process);
  void made.exit.then(() => running.delete(made.process));
  return made.process;
}

/** Kills all processes that a test has left running. Fails if one of them had ended unexpectedly. */
export async function endProcesses(): Promise<void> {
  await Promise.all([...running].map((each) => each.end()));
  const [first, ...others] = failures.splice(0);
  if (first === undefined) return;
  throw others.length === 0 ? first : new AggregateError([first, ...others], first.message);
}

function follow(
  child: ChildProcessByStdio<Writable, Readable, Readable>,
  name: string,
  mayDie: boolean,
): { readonly process: TestProcess; readonly exit: Promise<Exit> } {
  const lines: string[] = [];
  const waiting = new Set<() => void>();
  let stderr = '';
  let ended: Exit | undefined;
  let isToldToEnd = false;
  const look = (): void => {
    for (const each of [...waiting]) each();
  };
  const describe = ({ code, signal }: Exit): string =>
    `${name}\nended with ${signal ?? `code ${code}`}. Its standard error:\n${stderr || '(nothing)'}`;

  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    look();
  });
  child.stderr.on('data', (data: Buffer) => {
    stderr = (stderr + data.toString()).slice(-20_000);
    look();
  });
  // The process may have ended when something is written to it.
  child.stdin.on('error', () => {});
  const exit = new Promise<Exit>((resolve) => {
    // Not 'exit': after 'close' all of its output has been read.
    child.once('close', (code, signal) => {
      ended = { code, signal };
      if (!isToldToEnd && !mayDie && code !== 0) failures.push(new Error(describe(ended)));
      look();
      resolve(ended);
    });
    child.once('error', (error) => failures.push(error));
  });

  /** Waits until `read` returns a value or the process has ended. */
  const when = <Value>(read: () => Value | undefined, what: string): Promise<Value> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        const value = read();
        if (value === undefined && ended === undefined) return;
        waiting.delete(check);
        if (value !== undefined) resolve(value);
        else if (ended !== undefined) reject(new Error(`No ${what}: ${describe(ended)}`));
      };
      waiting.add(check);
      check();
    });

  const made: TestProcess = {
    pid: child.pid ?? 0,
    lines,
    get stderr() {
      return stderr;
    },
    when,
    send: (line) => void child.stdin.write(`${line}\n`),
    closeInput: () => void child.stdin.end(),
    take: (pick, what = 'such line') =>
      when(() => {
        for (const [at, line] of lines.entries()) {
          const value = pick(line);
          if (value === undefined) continue;
          lines.splice(at, 1);
          return value;
        }
        return undefined;
      }, what),
    says: async (pattern) => {
      await when(() => pattern.test(stderr) || undefined, String(pattern));
    },
    async end(signal = 'SIGKILL') {
      isToldToEnd = true;
      // A stopped process does not handle anything but SIGKILL.
      if (signal !== 'SIGKILL') child.kill('SIGCONT');
      child.kill(signal);
      return await exit;
    },
    signal: (signal) => void child.kill(signal),
    ended: exit,
    async finished() {
      const found = await exit;
      if (found.code !== 0) throw new Error(describe(found));
    },
  };
  return { process: made, exit };
}
