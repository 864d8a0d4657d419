import { resolve } from 'node:path';
import type { WaymarkError } from '../../core/error.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { usageError } from '../parse-arguments.ts';
import { parseStore, schemaOption } from '../source/open-store.ts';
import { count } from '../text/count.ts';

/** `waymark backup` */
export const backup = defineCommand({
  name: 'backup',
  summary: 'Copy a whole store while it is in use',
  usage: '<store> <target>',
  about:
    'The copy contains every turn that had ended when the backup started. A SQLite store is copied to a file and a file store\nto a folder; both copies are stores themselves. Encrypted content stays encrypted. The target must not exist yet.\n"waymark restore-backup" creates a store from a backup. A Postgres store is backed up with pg_dump:\nthe command prints how.',
  examples: ['backup sqlite:waymark.db nightly.db', 'backup file:./sessions ./sessions-backup'],
  options: { ...schemaOption, ...jsonOption },
  async run({ args, options, terminal }) {
    const [spec, given] = args;
    if (spec === undefined || given === undefined) {
      throw usageError('Name a store and the target of its backup.', 'backup');
    }
    const target = resolve(terminal.cwd, given);
    const store = parseStore(spec, terminal.cwd);
    if (store.kind === 'postgres') throw byPgDump(options.schema ?? 'waymark', given);
    const { sessions } =
      store.kind === 'sqlite'
        ? await (await import('../../store/sqlite/index.ts')).backupSqlite(store.path, target)
        : await (await import('../../store/file/index.ts')).backupFiles(store.path, target);
    if (options.json) terminal.print(JSON.stringify({ sessions, target }));
    else terminal.print(`Backed up ${count(sessions, 'session')} to ${given}.`);
  },
});

function byPgDump(schema: string, target: string): WaymarkError {
  const command = `pg_dump --format=custom --schema=${schema} --schema=waymark_queue --file=${target} "$DATABASE_URL"`;
  return usageError(`A Postgres store is backed up with pg_dump: ${command}.`, 'backup');
}
