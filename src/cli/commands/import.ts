import { createReadStream } from 'node:fs';
import { resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { WaymarkError } from '../../core/error.ts';
import type { SessionExport } from '../../session/export-session.ts';
import { defineCommand, jsonOption } from '../command.ts';
import { usageError } from '../parse-arguments.ts';
import { openStore, storeOptions } from '../source/open-store.ts';
import type { Terminal } from '../terminal.ts';
import { count } from '../text/count.ts';

/** `waymark import` */
export const importCommand = defineCommand({
  name: 'import',
  summary: 'Import sessions written by "waymark export"',
  usage: '<file>',
  about:
    'Checks every hash. If the id of a session already exists, the session is rejected; to import a single session under a\nnew id, use --session. To read from standard input, use - as the file.',
  examples: ['import sessions.jsonl --store sqlite:other.db', 'import session.json --session copy'],
  options: {
    session: { type: 'string', value: 'id', about: 'Import the session under this id' },
    agent: {
      type: 'string',
      short: 'a',
      value: 'name',
      about: 'Import for this agent [the exported one]',
    },
    owner: { type: 'string', value: 'id', about: 'Import for this owner [no owner]' },
    ...jsonOption,
    ...storeOptions,
  },
  async run({ args, options, terminal }) {
    const [path = '-'] = args;
    const { owner, session: sessionId } = options;
    const open = await openStore(options, terminal, { make: true });
    try {
      const imported: string[] = [];
      for await (const document of documentsOf(path, terminal)) {
        if (sessionId !== undefined && imported.length > 0) {
          throw usageError('--session works with a file of one session only.', 'import');
        }
        const agent = options.agent ?? document.session.agent;
        const scope = { agent, ...(owner !== undefined && { owner }) };
        const info = await open.maintenance.importSession(scope, document, {
          ...(sessionId !== undefined && { sessionId }),
        });
        imported.push(info.sessionId);
        terminal.progress(`Imported ${imported.length} …`);
      }
      if (options.json) terminal.print(JSON.stringify({ sessions: imported }));
      else terminal.print(`Imported ${count(imported.length, 'session')}.`);
    } finally {
      await open.close();
    }
  },
});

async function* documentsOf(path: string, { cwd, input }: Terminal): AsyncGenerator<SessionExport> {
  const source = path === '-' ? input : createReadStream(resolve(cwd, path));
  let line = 0;
  try {
    for await (const text of createInterface({ input: source })) {
      line++;
      if (text.trim() !== '') yield parseDocument(text, path, line);
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') {
      throw new WaymarkError('NOT_FOUND', `There is no file ${path}.`);
    }
    throw error;
  }
}

function parseDocument(text: string, path: string, line: number): SessionExport {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (cause) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `Line ${line} of ${path} is not JSON. Expected one exported session per line.`,
      { cause },
    );
  }
  const isExport =
    typeof document === 'object' &&
    document !== null &&
    'format' in document &&
    'session' in document &&
    typeof document.session === 'object' &&
    document.session !== null &&
    'agent' in document.session;
  // The store validates the rest.
  if (isExport) return document as SessionExport;
  throw new WaymarkError('INVALID_ARGUMENT', `Line ${line} of ${path} is not an exported session.`);
}
