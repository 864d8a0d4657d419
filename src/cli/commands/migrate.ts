import { defineCommand, jsonOption } from '../command.ts';
import { openStore, storeOptions } from '../source/open-store.ts';

/** `waymark migrate` */
export const migrate = defineCommand({
  name: 'migrate',
  summary: 'Upgrade a store to the format of this version',
  usage: '',
  about:
    'An app also upgrades its store when it opens it. Run this command before a deployment, so that the upgrade runs once and\nyou see its result. The tables of a Postgres store are created if they are missing; a SQLite or file store must\nexist. To move sessions to another store, use export and import.',
  examples: [
    'migrate --store sqlite:waymark.db',
    'migrate --store postgres:postgres://localhost/waymark',
  ],
  options: { ...jsonOption, ...storeOptions },
  async run({ options, terminal }) {
    terminal.progress('Opening …');
    const open = await openStore(options, terminal);
    try {
      const { name } = open.store;
      if (options.json) terminal.print(JSON.stringify({ store: name, ready: true }));
      else terminal.print(`The ${name} store is up to date.`);
    } finally {
      await open.close();
    }
  },
});
