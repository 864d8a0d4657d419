import { resolve } from 'node:path';
import { defineCommand, jsonOption } from '../command.ts';
import { UsageError } from '../parse-arguments.ts';
import * as stores from '../source/open-store.ts';
import { count } from '../text/format.ts';

export const backup = defineCommand({
  name: 'backup',
  summary: 'Copy a whole store while it is in use',
  usage: '<store> <target>',
  about:
    'The copy contains every turn that had ended when the backup started. A SQLite store is copied to a file and a file store\nto a folder; both copies are stores themselves. Encrypted content stays encrypted. The target must not exist yet.\n"waymark restore-backup" creates a store from a backup. A Postgres store is backed up with pg_dump:\nthe command prints how.',
  examples: ['backup sqlite:waymark.db nightly.db', 'backup file:./sessions ./sessions-backup'],
  options: { ...stores.schemaOption, ...jsonOption },
  async run({ args: [spec = '', given = ''], options, terminal: { cwd } }) {
    const target = resolve(cwd, given);
    const { backUp } = await stores.namedStore(spec, cwd);
    if (backUp === undefined) {
      const command = `pg_dump --format=custom --schema=${options.schema ?? 'waymark'} --schema=waymark_queue --file=${given} "$DATABASE_URL"`;
      throw new UsageError(`A Postgres store is backed up with pg_dump: ${command}.`);
    }
    const { sessions } = await backUp(target);
    return {
      receipt: { sessions, target },
      text: `Backed up ${count(sessions, 'session')} to ${given}.`,
    };
  },
});

export const restoreBackup = defineCommand({
  name: 'restore-backup',
  summary: 'Create a store from a backup',
  usage: '<backup> <store>',
  about:
    'The backup must come from "waymark backup". The store must be of the same kind and must not exist yet; nothing is\noverwritten. Unfinished background runs continue when an app opens the store. A Postgres store is restored from the file\nof an earlier version; dumps of pg_dump are restored with pg_restore. To move sessions to a store of another kind, use\nexport and import.',
  examples: [
    'restore-backup nightly.db sqlite:waymark.db',
    'restore-backup ./sessions-backup file:./sessions',
    'restore-backup old.backup.gz postgres://localhost/waymark',
  ],
  options: { ...stores.schemaOption, ...jsonOption },
  async run({ args: [given = '', spec = ''], options, terminal: { cwd } }) {
    const { restore } = await stores.namedStore(spec, cwd);
    const { sessions } = await restore(resolve(cwd, given), options.schema);
    return { receipt: { sessions }, text: `Restored ${count(sessions, 'session')} to ${spec}.` };
  },
});

export const migrate = stores.storeCommand({
  name: 'migrate',
  summary: 'Upgrade a store to the format of this version',
  about:
    'An app also upgrades its store when it opens it. Run this command before a deployment, so that the upgrade runs once and\nyou see its result. The tables of a Postgres store are created if they are missing; a SQLite or file store must\nexist. To move sessions to another store, use export and import.',
  examples: [
    'migrate --store sqlite:waymark.db',
    'migrate --store postgres:postgres://localhost/waymark',
  ],
  options: jsonOption,
  async run({ store: { name } }) {
    return { receipt: { store: name, ready: true }, text: `The ${name} store is up to date.` };
  },
});
