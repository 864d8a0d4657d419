import { resolve } from 'node:path';
import type { WaymarkError } from '../../core/error.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { usageError } from '../parse-arguments.ts';
import * as stores from '../source/open-store.ts';
import { count } from '../text/format.ts';

/** `waymark backup` */
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
    const store = stores.parseStore(spec, cwd);
    if (store.kind === 'postgres') throw byPgDump(options.schema ?? 'waymark', given);
    const { sessions } = await stores.backUp(store, target);
    return {
      receipt: { sessions, target },
      text: `Backed up ${count(sessions, 'session')} to ${given}.`,
    };
  },
});

function byPgDump(schema: string, target: string): WaymarkError {
  const command = `pg_dump --format=custom --schema=${schema} --schema=waymark_queue --file=${target} "$DATABASE_URL"`;
  return usageError(`A Postgres store is backed up with pg_dump: ${command}.`, 'backup');
}

/** `waymark restore-backup` */
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
    const store = stores.parseStore(spec, cwd);
    const { sessions } = await stores.restoreBackup(store, resolve(cwd, given), options.schema);
    return { receipt: { sessions }, text: `Restored ${count(sessions, 'session')} to ${spec}.` };
  },
});

/** `waymark migrate` */
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
