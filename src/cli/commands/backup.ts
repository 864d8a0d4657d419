import { resolve } from 'node:path';
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
    'The copy contains every turn that had ended when the backup started. A SQLite store is copied to a file and a file store\nto a folder; both copies are stores themselves. A Postgres store is written to a compressed file. Encrypted content\nstays encrypted. The target must not exist yet. "waymark restore-backup" creates a store from a backup.',
  examples: [
    'backup sqlite:waymark.db nightly.db',
    'backup file:./sessions ./sessions-backup',
    'backup postgres://localhost/waymark nightly.backup.gz',
  ],
  options: { ...schemaOption, ...jsonOption },
  async run({ args, options, terminal }) {
    const [spec, given] = args;
    if (spec === undefined || given === undefined) {
      throw usageError('Name a store and the target of its backup.', 'backup');
    }
    const target = resolve(terminal.cwd, given);
    const store = parseStore(spec, terminal.cwd);
    const { sessions } = await backUp(store, target, options.schema);
    if (options.json) terminal.print(JSON.stringify({ sessions, target }));
    else terminal.print(`Backed up ${count(sessions, 'session')} to ${given}.`);
  },
});

async function backUp(
  store: ReturnType<typeof parseStore>,
  target: string,
  schema: string | undefined,
): Promise<{ readonly sessions: number }> {
  switch (store.kind) {
    case 'sqlite':
      return (await import('../../store/sqlite/index.ts')).backupSqlite(store.path, target);
    case 'file':
      return (await import('../../store/file/index.ts')).backupFiles(store.path, target);
    case 'postgres': {
      const where = { connectionString: store.connectionString, ...(schema && { schema }) };
      return (await import('../../store/postgres/index.ts')).backupPostgres(where, target);
    }
  }
}
