import { styleText } from 'node:util';

export type Terminal = ReturnType<typeof createTerminal>;

export function createTerminal(process: NodeJS.Process) {
  const { stdout, stderr, stdin, env } = process;
  let shown = 0;
  const clear = (): void => {
    if (shown > 0) stderr.write(`\r${' '.repeat(shown)}\r`);
    shown = 0;
  };
  // The reader of a pipe may close it early, as `head` does.
  stdout.on('error', (error) => {
    if ('code' in error && error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  return {
    /** Results, to the standard output. */
    write(text: string): void {
      clear();
      stdout.write(text);
    },
    print(line = ''): void {
      clear();
      stdout.write(`${line}\n`);
    },
    /** A line of information, to the standard error. */
    note(line: string): void {
      clear();
      stderr.write(`${line}\n`);
    },
    /** Shows progress on one line of a terminal; elsewhere does nothing. */
    progress(text: string): void {
      if (!stderr.isTTY) return;
      clear();
      stderr.write(text);
      shown = text.length;
    },
    /** Whether the user can be asked: input and output are a terminal. */
    interactive: stdin.isTTY === true && stdout.isTTY === true,
    style: createStyle(hasColours(stdout, env)),
    input: stdin as NodeJS.ReadStream,
    output: stdout as NodeJS.WriteStream,
    cwd: process.cwd(),
    env,
    /** Calls the listener on Ctrl-C and SIGTERM, instead of ending the process. Returns a function that unsubscribes. */
    onInterrupt(listener: () => void): () => void {
      process.on('SIGINT', listener);
      process.on('SIGTERM', listener);
      return () => {
        process.off('SIGINT', listener);
        process.off('SIGTERM', listener);
      };
    },
  };
}

/** Resolves at the first Ctrl-C or SIGTERM; the next one ends the process. */
export function interrupted({ onInterrupt }: Pick<Terminal, 'onInterrupt'>): Promise<void> {
  return new Promise((resolve) => {
    const unsubscribe = onInterrupt(() => {
      unsubscribe();
      resolve();
    });
  });
}

/** Runs some work with a signal that Ctrl-C and SIGTERM abort. */
export async function stoppable<Value>(
  { onInterrupt }: Pick<Terminal, 'onInterrupt'>,
  work: (signal: AbortSignal) => Promise<Value>,
): Promise<Value> {
  const stop = new AbortController();
  const unsubscribe = onInterrupt(() => stop.abort());
  try {
    return await work(stop.signal);
  } finally {
    unsubscribe();
  }
}

function hasColours(stdout: NodeJS.WriteStream, env: NodeJS.ProcessEnv): boolean {
  if (env.NO_COLOR !== undefined && env.NO_COLOR !== '') return false;
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== '0') return true;
  return stdout.isTTY === true && env.TERM !== 'dumb';
}

/** Formats text for a terminal. */
export type Style = ReturnType<typeof createStyle>;

/** The styles of a terminal; without colours, text does not change. */
export function createStyle(colours: boolean) {
  const style =
    (format: Parameters<typeof styleText>[0]) =>
    (text: string): string =>
      colours ? styleText(format, text, { validateStream: false }) : text;
  return {
    dim: style('dim'),
    bold: style('bold'),
    accent: style('cyan'),
    good: style('green'),
    bad: style('red'),
    warn: style('yellow'),
  };
}
