import { WaymarkError } from '../core/error.ts';
import type { OptionSpecs, OptionValues } from './command.ts';
import { usageError } from './parse-arguments.ts';
import type { Terminal } from './terminal.ts';
import { confirm } from './text/confirm.ts';

/** Options of every command that deletes. */
export const deletionOptions = {
  'dry-run': { type: 'boolean', about: 'Show what would be deleted, and delete nothing' },
  yes: {
    type: 'boolean',
    short: 'y',
    about: 'Delete without asking; required without a terminal',
    destructive: true,
  },
} as const satisfies OptionSpecs;

type DeletionOptions = OptionValues<typeof deletionOptions>;

/** Refuses at once where there is no terminal to ask for confirmation. */
export function checkCanConfirm(
  options: DeletionOptions,
  { interactive }: Pick<Terminal, 'interactive'>,
  command: string,
): void {
  if (options.yes || options['dry-run'] || interactive) return;
  throw usageError(
    'This command deletes data, and there is no terminal to ask for confirmation. Use --dry-run to see what would be deleted, and --yes to delete it.',
    command,
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
