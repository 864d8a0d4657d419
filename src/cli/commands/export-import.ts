import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { finished } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';
import { invalid, WaymarkError } from '../../core/error.ts';
import { defined, isJsonObject, jsonIn } from '../../core/json/json.ts';
import { redactExport, toTestFile } from '../../replay/index.ts';
import type { SessionExport } from '../../session/export-session.ts';
import type { Scope } from '../../store/contract/store.ts';
import { flag, jsonOption, option } from '../command.ts';
import { UsageError } from '../parse-arguments.ts';
import { findAgentsFile } from '../source/load-app.ts';
import {
  findStoredSession,
  type OpenStore,
  type ScopeFilter,
  scopeOf,
  scopeOptions,
  scopesOf,
  sessionsIn,
  storeCommand,
} from '../source/open-store.ts';
import type { Terminal } from '../terminal.ts';
import { count } from '../text/format.ts';

export const exportCommand = storeCommand({
  name: 'export',
  summary: 'Export sessions, each as one JSON document',
  usage: '[session]',
  about:
    'A document contains the whole tree of a session; each message, state and artifact is stored once. Documents are written\none per line (JSON Lines), and "waymark import" reads them.',
  examples: [
    'export 019b2f6e-… --out session.json',
    'export --all --out sessions.jsonl',
    'export 019b2f6e-… --as-test test/sessions',
  ],
  options: {
    all: flag('Every session'),
    out: option('file', 'The file to write [standard output]', { short: 'o' }),
    'as-test': option(
      'folder',
      'Write each session as a fixture with a Vitest test that replays it',
    ),
    transform: option(
      'file',
      'A file whose default export changes every text, to remove personal data',
    ),
    ...scopeOptions,
  },
  check({ args, options }) {
    if ((args.length === 0) === (options.all !== true)) {
      throw new UsageError('Name a session, or use --all.');
    }
    if (options['as-test'] !== undefined && options.out !== undefined) {
      throw new UsageError('Use either --as-test or --out, not both.');
    }
  },
  async run({ args: [given], options, terminal, ...open }) {
    const { out } = options;
    const { cwd, note, write, progress } = terminal;
    const transform = await loadTransform(options.transform, cwd);
    const writeTest = testWriter(options, terminal);
    const file = out === undefined ? undefined : createWriteStream(resolve(cwd, out));
    let written = 0;
    try {
      for (const [scope, id] of await selected(open, options, given)) {
        const found = await open.maintenance.exportSession(scope, id);
        const document = found && transform ? await redactExport(found, transform) : found;
        if (document === undefined) continue;
        if (writeTest) {
          await writeTest(document);
          continue;
        }
        const line = `${JSON.stringify(document)}\n`;
        if (file) file.write(line);
        else write(line);
        progress(`Exported ${++written} …`);
      }
      if (!file) return;
      file.end();
      await finished(file);
      note(`Wrote ${count(written, 'session')} to ${out}.`);
    } finally {
      file?.destroy();
    }
  },
});

/** Writes the fixture and the test of a session; `undefined` without `--as-test`. */
function testWriter(
  options: { readonly 'as-test'?: string; readonly file?: string },
  { cwd, note }: Pick<Terminal, 'cwd' | 'note'>,
): ((document: SessionExport) => Promise<void>) | undefined {
  const given = options['as-test'];
  if (given === undefined) return undefined;
  const folder = resolve(cwd, given);
  const app = relative(folder, findAgentsFile(options.file, cwd)).replaceAll('\\', '/');
  const appModule = app.startsWith('.') ? app : `./${app}`;
  return async (document) => {
    const { sessionId } = document.session;
    const name = sessionId.replace(/[^\w.-]/g, '_');
    const fixture = `${name}.session.json`;
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, fixture), `${JSON.stringify(document, null, 1)}\n`);
    await writeFile(join(folder, `${name}.test.ts`), toTestFile({ sessionId, fixture, appModule }));
    note(`Wrote ${join(given, `${name}.test.ts`)} and ${fixture}.`);
  };
}

async function loadTransform(
  file: string | undefined,
  cwd: string,
): Promise<Parameters<typeof redactExport>[1] | undefined> {
  if (file === undefined) return undefined;
  const module = (await import(pathToFileURL(resolve(cwd, file)).href)) as { default?: unknown };
  if (typeof module.default === 'function')
    return module.default as Parameters<typeof redactExport>[1];
  throw new UsageError(`${file} has no default export that is a function.`);
}

/** The sessions to export: the given one, or all. */
async function selected(
  open: OpenStore,
  options: ScopeFilter,
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

export const importCommand = storeCommand({
  name: 'import',
  summary: 'Import sessions written by "waymark export"',
  usage: '<file>',
  about:
    'Checks every hash. If the id of a session already exists, the session is rejected; to import a single session under a\nnew id, use --session. To read from standard input, use - as the file.',
  examples: ['import sessions.jsonl --store sqlite:other.db', 'import session.json --session copy'],
  options: {
    session: option('id', 'Import the session under this id'),
    agent: option('name', 'Import for this agent [the exported one]', { short: 'a' }),
    owner: option('id', 'Import for this owner [no owner]'),
    ...jsonOption,
  },
  canCreate: true,
  async run({ args: [path = '-'], options, terminal, maintenance }) {
    const { agent, owner, session: sessionId } = options;
    const sessions: string[] = [];
    for await (const document of documentsOf(path, terminal)) {
      if (sessionId !== undefined && sessions.length > 0)
        throw new UsageError('--session works with a file of one session only.');
      const scope = scopeOf(agent ?? document.session.agent, owner);
      const target = await maintenance.importSession(scope, document, defined({ sessionId }));
      sessions.push(target.sessionId);
      terminal.progress(`Imported ${sessions.length} …`);
    }
    return { receipt: { sessions }, text: `Imported ${count(sessions.length, 'session')}.` };
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
  const place = `Line ${line} of ${path}`;
  const document = jsonIn(text, `${place} is not JSON. Expected one exported session per line.`);
  const isExport =
    isJsonObject(document) &&
    'format' in document &&
    isJsonObject(document.session) &&
    'agent' in document.session;
  // The store validates the rest.
  if (isExport) return document as unknown as SessionExport;
  throw invalid(`${place} is not an exported session.`);
}
