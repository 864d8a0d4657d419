import { createInterface } from 'node:readline/promises';
import { WaymarkError } from '../core/error.ts';
import { flag, type OptionSpecs, type OptionValues } from './command.ts';
import { UsageError } from './parse-arguments.ts';
import type { Terminal } from './terminal.ts';

export const deletionOptions = {
  'dry-run': flag('Show what would be deleted, and delete nothing'),
  yes: flag('Delete without asking; required without a terminal', {
    short: 'y',
    destructive: true,
  }),
} as const satisfies OptionSpecs;

type DeletionOptions = OptionValues<typeof deletionOptions>;

/** Refuses at once where there is no terminal to ask for confirmation. */
export function checkCanConfirm(
  options: DeletionOptions,
  { interactive }: Pick<Terminal, 'interactive'>,
): void {
  if (options.yes || options['dry-run'] || interactive) return;
  throw new UsageError(
    'This command deletes data, and there is no terminal to ask for confirmation. Use --dry-run to see what would be deleted, and --yes to delete it.',
  );
}

/** Asks for confirmation unless `--yes` was given. A refusal is CANCELLED. */
export async function confirmDeletion(
  question: string,
  { yes }: DeletionOptions,
  terminal: Terminal,
): Promise<void> {
  if (yes || (await confirm(question, terminal))) return;
  throw new WaymarkError('CANCELLED', 'Nothing was deleted.');
}

/** Asks a yes-or-no question; anything but `y` or `yes` is a no. */
async function confirm(
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
