import { createInterface } from 'node:readline/promises';
import type { Terminal } from '../terminal.ts';

/** Asks a yes-or-no question; anything but `y` or `yes` is a no. */
export async function confirm(
  question: string,
  { input, output }: Pick<Terminal, 'input' | 'output'>,
): Promise<boolean> {
  const lines = createInterface({ input, output });
  try {
    return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim());
  } catch {
    // Ctrl-C, or the end of the input.
    return false;
  } finally {
    lines.close();
  }
}
