import { createInterface } from 'node:readline/promises';
import type { Terminal } from '../terminal.ts';

/** Asks a yes-or-no question; only a clear yes is a yes. */
export async function confirm(
  question: string,
  { input, output }: Pick<Terminal, 'input' | 'output'>,
): Promise<boolean> {
  const lines = createInterface({ input, output });
  try {
    return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim());
  } catch {
    // Ctrl-C, or no more input.
    return false;
  } finally {
    lines.close();
  }
}
