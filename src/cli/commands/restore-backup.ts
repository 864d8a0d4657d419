import { resolve } from 'node:path';
import { defineCommand, jsonOption } from '../command.ts';
import { usageError } from '../parse-arguments.ts';
import { parseStore, schemaOption } from '../source/open-store.ts';
import { count } from '../text/count.ts';

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
  options: { ...schemaOption, ...jsonOption },
  async run({ args, options, terminal }) {
    const [given, spec] = args;
    if (spec === undefined || given === undefined) {
      throw usageError('Name a backup and the store to create from it.', 'restore-backup');
    }
    const source = resolve(terminal.cwd, given);
    const store = parseStore(spec, terminal.cwd);
    const { sessions } = await restoreTo(store, source, options.schema);
    if (options.json) terminal.print(JSON.stringify({ sessions }));
    else terminal.print(`Restored ${count(sessions, 'session')} to ${spec}.`);
  },
});

async function restoreTo(
  store: ReturnType<typeof parseStore>,
  source: string,
  schema: string | undefined,
): Promise<{ readonly sessions: number }> {
  switch (store.kind) {
    case 'sqlite':
      return (await import('../../store/sqlite/index.ts')).restoreSqlite(source, store.path);
    case 'file':
      return (await import('../../store/file/index.ts')).restoreFiles(source, store.path);
    case 'postgres': {
      const where = { connectionString: store.connectionString, ...(schema && { schema }) };
      return (await import('../../store/postgres/index.ts')).restorePostgres(source, where);
    }
  }
}
