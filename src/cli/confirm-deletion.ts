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

type DeletionOptions = Pick<OptionValues<typeof deletionOptions>, 'yes'>;

/** Refuses at once where there is no terminal to ask for confirmation. */
export function checkCanConfirm(
  options: OptionValues<typeof deletionOptions>,
  { interactive }: Terminal,
): void {
  if (options.yes || options['dry-run'] || interactive) return;
  throw new UsageError(
    'This command deletes data, and there is no terminal to ask for confirmation. Use --dry-run to see what would be deleted, and --yes to delete it.',
  );
}

/** Asks for confirmation unless `--yes` was given. Anything but `y` or `yes` is a refusal: CANCELLED. */
export async function confirmDeletion(
  question: string,
  { yes }: DeletionOptions,
  { input, output }: Terminal,
  refused = 'Nothing was deleted.',
): Promise<void> {
  if (yes) return;
  const lines = createInterface({ input, output });
  // It rejects at Ctrl-C, and at the end of the input.
  const answer = await lines.question(`${question} [y/N] `).catch(() => '');
  lines.close();
  if (!/^y(es)?$/i.test(answer.trim())) throw new WaymarkError('CANCELLED', refused);
}
