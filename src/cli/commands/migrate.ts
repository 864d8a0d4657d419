import { defineCommand, jsonOption } from '../command.ts';
import { openStore, storeOptions } from '../source/open-store.ts';

/** `waymark migrate` */
export const migrate = defineCommand({
  name: 'migrate',
  summary: 'Bring a store to the format of this version',
  usage: '',
  about:
    'Stores do this by themselves when they are opened; run it before a deployment to have it done once, and to\nsee that it works. A store that is not there yet is made. To move sessions to another store, use export and import.',
  examples: [
    'migrate --store sqlite:waymark.db',
    'migrate --store postgres:postgres://localhost/waymark',
  ],
  options: { ...jsonOption, ...storeOptions },
  async run({ options, terminal }) {
    terminal.progress('Opening …');
    const open = await openStore(options, terminal, { make: true });
    try {
      const { name } = open.store;
      if (options.json) terminal.print(JSON.stringify({ store: name, ready: true }));
      else terminal.print(`The ${name} store has the format of this version.`);
    } finally {
      await open.close();
    }
  },
});
