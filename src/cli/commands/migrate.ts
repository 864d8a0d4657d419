import { defineCommand, jsonOption } from '../command.ts';
import { openStore, storeOptions } from '../source/open-store.ts';

/** `waymark migrate` */
export const migrate = defineCommand({
  name: 'migrate',
  summary: 'Upgrade a store to the format of this version',
  usage: '',
  about:
    'A store is also upgraded when an app opens it; run this before a deployment to do it once, and to see that it works.\nA store that does not exist yet is created. To move sessions to another store, use export and import.',
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
      else terminal.print(`The ${name} store is up to date.`);
    } finally {
      await open.close();
    }
  },
});
