import { defined } from '../../core/json/json.ts';
import type { Fault } from '../../store/contract/store.ts';
import { jsonOption, option } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { storeCommand } from '../source/open-store.ts';
import { stoppable } from '../terminal.ts';
import { count, oneLine, progressBar } from '../text/format.ts';

export const verify = storeCommand({
  name: 'verify',
  summary: 'Check a store for damage',
  about:
    'Recomputes the hash of every state and follows every reference. Exits with 1 if it finds a fault. Turns can run at the\nsame time. If you stop it with Ctrl-C, it prints how to continue.\nFaults are printed as they are found; a continued verification does not repeat the faults before its cursor.',
  examples: ['verify --store sqlite:waymark.db', 'verify --json'],
  options: {
    from: option(
      'cursor',
      'Continue a verification that was stopped, from the cursor that it printed',
    ),
    ...jsonOption,
  },
  async run({ options: { from, json }, terminal, maintenance }) {
    let checked = 0;
    let cursor = from;
    const found: Fault[] = [];
    const show = (fault: Fault): void => {
      found.push(fault);
      if (!json) terminal.print(`${fault.kind}  ${oneLine(fault.message, 300)}`);
    };
    const printJson = (more: object): void =>
      terminal.print(JSON.stringify({ checked, faults: found, from, ...more }, null, 2));
    return await stoppable(terminal, async (signal) => {
      try {
        const faults = await maintenance.verify({
          signal,
          ...defined({ cursor }),
          onProgress(done, progress) {
            checked = done;
            cursor = progress.cursor;
            terminal.progress(progressBar('Checking', done, progress.total));
          },
          onFault: show,
        });
        // A store of your own may not report them one by one.
        for (const fault of faults.slice(found.length)) show(fault);
      } catch (error) {
        if (signal.aborted) {
          if (json) printJson({ cursor });
          const so = found.length === 0 ? '' : ` Found ${countFaults(found)} so far.`;
          if (cursor !== undefined) {
            terminal.note(`Stopped.${so} To continue, add --from ${cursor}.`);
          } else if (so !== '') terminal.note(`Stopped.${so}`);
        }
        throw error;
      }
      if (json) printJson({});
      else {
        const what = from === undefined ? 'the store' : 'the rest of the store';
        terminal.note(`Checked ${what}, found ${countFaults(found)}.`);
        if (from !== undefined) terminal.note(onlyTheRest);
      }
      return found.length === 0 ? exitCode.ok : exitCode.failed;
    });
  },
});

// A verification that continues does not know this.
const onlyTheRest =
  "What is before the cursor was not checked again: its faults are in the output of the run that was stopped. The database's own check was skipped too.";

function countFaults({ length }: readonly Fault[]): string {
  return length === 0 ? 'no faults' : count(length, 'fault');
}
