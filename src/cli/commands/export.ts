import { createWriteStream } from 'node:fs';
import { resolve } from 'node:path';
import { finished } from 'node:stream/promises';
import type { Scope, SessionExport } from '../../store/contract/store.ts';
import { defineCommand } from '../command.ts';
import { usageError } from '../parse-arguments.ts';
import { type OpenStore, openStore, scopeOptions, storeOptions } from '../source/open-store.ts';
import { findStoredSession, scopesOf, sessionsIn } from '../source/stored-session.ts';
import { count } from '../text/count.ts';

/** `waymark export` */
export const exportCommand = defineCommand({
  name: 'export',
  summary: 'Export sessions, each as one JSON document',
  usage: '[session]',
  about:
    'A document contains the whole tree of a session; each message, state and artifact is stored once. Documents are written\none per line (JSON Lines), and "waymark import" reads them.',
  examples: ['export 019b2f6e-… --out session.json', 'export --all --out sessions.jsonl'],
  options: {
    all: { type: 'boolean', about: 'Every session' },
    out: {
      type: 'string',
      short: 'o',
      value: 'file',
      about: 'The file to write [standard output]',
    },
    ...scopeOptions,
    ...storeOptions,
  },
  async run({ args, options, terminal }) {
    const [given] = args;
    if ((given === undefined) === (options.all !== true)) {
      throw usageError('Name a session, or use --all.', 'export');
    }
    const open = await openStore(options, terminal);
    const file =
      options.out === undefined ? undefined : createWriteStream(resolve(terminal.cwd, options.out));
    try {
      let written = 0;
      const write = (document: SessionExport): void => {
        const line = `${JSON.stringify(document)}\n`;
        if (file) file.write(line);
        else terminal.write(line);
        terminal.progress(`Exported ${++written} …`);
      };
      for (const [scope, id] of await selected(open, options, given)) {
        const document = await open.maintenance.exportSession(scope, id);
        if (document) write(document);
      }
      if (file) {
        file.end();
        await finished(file);
        terminal.note(`Wrote ${count(written, 'session')} to ${options.out}.`);
      }
    } finally {
      file?.destroy();
      await open.close();
    }
  },
});

/** The sessions to export: the given one, or all. */
async function selected(
  open: OpenStore,
  options: { readonly agent?: string; readonly owner?: string },
  given: string | undefined,
): Promise<readonly (readonly [Scope, string])[]> {
  if (given !== undefined) {
    const { scope, session } = await findStoredSession(open, options, given);
    return [[scope, session.sessionId]];
  }
  const lists = scopesOf(options, open).map(async (scope) =>
    (await sessionsIn(open, scope)).map(({ sessionId }) => [scope, sessionId] as const),
  );
  return (await Promise.all(lists)).flat();
}
