import { styleText } from 'node:util';

/** The input and output of a command. */
export interface Terminal {
  /** Results, to the standard output. */
  write(text: string): void;
  /** A line of results. */
  print(line?: string): void;
  /** A line of information, to the standard error. */
  note(line: string): void;
  /** Shows progress on one line of a terminal; elsewhere does nothing. */
  progress(text: string): void;
  /** Whether the user can be asked: input and output are a terminal. */
  readonly interactive: boolean;
  readonly style: Style;
  readonly input: NodeJS.ReadStream;
  readonly output: NodeJS.WriteStream;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Calls the listener on Ctrl-C and SIGTERM, instead of ending the process. Returns a function that unsubscribes. */
  onInterrupt(listener: () => void): () => void;
}

/** The terminal of a process. */
export function createTerminal(process: NodeJS.Process): Terminal {
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
    write(text) {
      clear();
      stdout.write(text);
    },
    print(line = '') {
      clear();
      stdout.write(`${line}\n`);
    },
    note(line) {
      clear();
      stderr.write(`${line}\n`);
    },
    progress(text) {
      if (!stderr.isTTY) return;
      clear();
      stderr.write(text);
      shown = text.length;
    },
    interactive: stdin.isTTY === true && stdout.isTTY === true,
    style: createStyle(hasColours(stdout, env)),
    input: stdin,
    output: stdout,
    cwd: process.cwd(),
    env,
    onInterrupt(listener) {
      process.on('SIGINT', listener);
      process.on('SIGTERM', listener);
      return () => {
        process.off('SIGINT', listener);
        process.off('SIGTERM', listener);
      };
    },
  };
}

function hasColours(stdout: NodeJS.WriteStream, env: NodeJS.ProcessEnv): boolean {
  if (env.NO_COLOR !== undefined && env.NO_COLOR !== '') return false;
  if (env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== '0') return true;
  return stdout.isTTY === true && env.TERM !== 'dumb';
}

type Format = Parameters<typeof styleText>[0];

/** Formats text for a terminal. */
export interface Style {
  dim(text: string): string;
  bold(text: string): string;
  accent(text: string): string;
  good(text: string): string;
  bad(text: string): string;
  warn(text: string): string;
}

/** The styles of a terminal; without colours, text does not change. */
export function createStyle(colours: boolean): Style {
  const style =
    (format: Format) =>
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
