import { PassThrough } from 'node:stream';
import { run } from '../../../src/cli/run.ts';
import { createStyle } from '../../../src/cli/terminal.ts';

/** How a command in this process ended. */
export interface Answered {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What a person types: the answer to the first question that the end of the output matches. */
export type Answers = readonly (readonly [asked: RegExp, answer: string])[];

/**
 * Runs a command in this process, in a terminal where a person types the answers, or presses Ctrl-C when they see progress. A
 * single answer is the one to a confirmation. Not for commands that load an app.
 */
export async function inTerminal(
  cwd: string,
  args: readonly string[],
  answers: string | Answers,
  { interrupts = false }: { readonly interrupts?: boolean } = {},
): Promise<Answered> {
  const known: Answers = typeof answers === 'string' ? [[/\[y\/N\] $/, answers]] : answers;
  let stdout = '';
  let stderr = '';
  let interrupt: (() => void) | undefined;
  const input = new PassThrough();
  const output = new PassThrough();
  output.on('data', (text: Buffer) => {
    stdout += text.toString();
    // Answers when it is asked.
    const [, answer] = known.find(([asked]) => asked.test(stdout)) ?? [];
    if (answer !== undefined) input.write(`${answer}\n`);
  });
  const code = await run(args, {
    write: (text) => void output.write(text),
    print: (line = '') => void output.write(`${line}\n`),
    note: (line) => {
      stderr += `${line}\n`;
    },
    progress: () => interrupt?.(),
    interactive: true,
    style: createStyle(false),
    // Streams stand in for a terminal's, which only differ in what is not used here.
    input: input as unknown as NodeJS.ReadStream,
    output: output as unknown as NodeJS.WriteStream,
    cwd,
    env: {},
    onInterrupt(listener) {
      if (interrupts) interrupt = listener;
      return () => {};
    },
  });
  return { code, stdout, stderr };
}
