import { resolve } from 'node:path';
import { defineCommand, jsonOption } from '../command.ts';
import { usageError } from '../parse-arguments.ts';
import { parseStore, schemaOption } from '../source/open-store.ts';

/** `waymark restore` */
export const restore = defineCommand({
  name: 'restore',
  summary: 'Make a store of what "waymark backup" wrote',
  usage: '<backup> <store>',
  about:
    'The store must be of the same kind and must not be there yet: nothing is overwritten. Unfinished background runs\ncontinue when an app opens it. To move sessions to a store of another kind, use export and import.',
  examples: [
    'restore nightly.db sqlite:waymark.db',
    'restore ./sessions-backup file:./sessions',
    'restore nightly.backup.gz postgres://localhost/waymark',
  ],
  options: { ...schemaOption, ...jsonOption },
  async run({ args, options, terminal }) {
    const [given, spec] = args;
    if (spec === undefined || given === undefined) {
      throw usageError('Name a backup and the store to make of it.', 'restore');
    }
    const source = resolve(terminal.cwd, given);
    const store = parseStore(spec, terminal.cwd);
    const { sessions } = await restoreTo(store, source, options.schema);
    if (options.json) terminal.print(JSON.stringify({ sessions }));
    else terminal.print(`Restored ${sessions} ${sessions === 1 ? 'session' : 'sessions'}.`);
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
