import { PassThrough } from 'node:stream';
import { run } from '../../../src/cli/run.ts';
import { createStyle } from '../../../src/cli/text/style.ts';

/** How a command in this process ended. */
export interface Answered {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command in this process, in a terminal where a person types `answer`. Not for commands that load an app. */
export async function inTerminal(
  cwd: string,
  args: readonly string[],
  answer: string,
): Promise<Answered> {
  let stdout = '';
  let stderr = '';
  const input = new PassThrough();
  const output = new PassThrough();
  output.on('data', (text: Buffer) => {
    stdout += text.toString();
    // Answers when it is asked.
    if (/\[y\/N\] $/.test(stdout)) input.write(`${answer}\n`);
  });
  const code = await run(args, {
    write: (text) => void output.write(text),
    print: (line = '') => void output.write(`${line}\n`),
    note: (line) => {
      stderr += `${line}\n`;
    },
    progress: () => {},
    interactive: true,
    style: createStyle(false),
    // Streams stand in for a terminal's, which only differ in what is not used here.
    input: input as unknown as NodeJS.ReadStream,
    output: output as unknown as NodeJS.WriteStream,
    cwd,
    env: {},
    onInterrupt: () => () => {},
  });
  return { code, stdout, stderr };
}
