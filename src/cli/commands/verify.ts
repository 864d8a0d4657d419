import { defineCommand, jsonOption } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { openStore, storeOptions } from '../source/open-store.ts';
import { oneLine } from '../text/safe.ts';

/** `waymark verify` */
export const verify = defineCommand({
  name: 'verify',
  summary: 'Check that a store is whole',
  usage: '',
  about:
    'Works out the hash of every state anew and follows every reference. Exits with 1 when something is wrong.',
  examples: ['verify --store sqlite:waymark.db', 'verify --json'],
  options: { ...jsonOption, ...storeOptions },
  async run({ options, terminal }) {
    const open = await openStore(options, terminal);
    try {
      let checked = 0;
      const faults = await open.maintenance.verify({
        onProgress: (done) => {
          checked = done;
          terminal.progress(`Checked ${done} …`);
        },
      });
      if (options.json) terminal.print(JSON.stringify({ checked, faults }, null, 2));
      else {
        for (const { kind, message } of faults) terminal.print(`${kind}  ${oneLine(message, 300)}`);
        terminal.note(
          faults.length === 0
            ? `Checked ${checked}, all of it is whole.`
            : `Checked ${checked}, found ${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}.`,
        );
      }
      return faults.length === 0 ? exitCode.ok : exitCode.failed;
    } finally {
      await open.close();
    }
  },
});
