import { defineCommand, jsonOption } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { openStore, storeOptions } from '../source/open-store.ts';
import { count } from '../text/count.ts';
import { oneLine } from '../text/safe.ts';

/** `waymark verify` */
export const verify = defineCommand({
  name: 'verify',
  summary: 'Check a store for damage',
  usage: '',
  about:
    'Recomputes the hash of every state and follows every reference. Exits with 1 when it finds a fault.',
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
            ? `Checked ${count(checked, 'snapshot')}, found no faults.`
            : `Checked ${count(checked, 'snapshot')}, found ${count(faults.length, 'fault')}.`,
        );
      }
      return faults.length === 0 ? exitCode.ok : exitCode.failed;
    } finally {
      await open.close();
    }
  },
});
