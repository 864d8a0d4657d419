import { createWriteStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join, relative, resolve } from 'node:path';
import { finished } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';
import { type RedactText, redactExport, toTestFile } from '../../replay/index.ts';
import type { SessionExport } from '../../session/export-session.ts';
import type { Scope } from '../../store/contract/store.ts';
import { defineCommand } from '../command.ts';
import { usageError } from '../parse-arguments.ts';
import { findAgentsFile } from '../source/find-file.ts';
import { type OpenStore, openStore, scopeOptions, storeOptions } from '../source/open-store.ts';
import { findStoredSession, scopesOf, sessionsIn } from '../source/stored-session.ts';
import type { Terminal } from '../terminal.ts';
import { count } from '../text/count.ts';

/** `waymark export` */
export const exportCommand = defineCommand({
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
    all: { type: 'boolean', about: 'Every session' },
    out: {
      type: 'string',
      short: 'o',
      value: 'file',
      about: 'The file to write [standard output]',
    },
    'as-test': {
      type: 'string',
      value: 'folder',
      about: 'Write each session as a fixture with a Vitest test that replays it',
    },
    transform: {
      type: 'string',
      value: 'file',
      about: 'A file whose default export changes every text, to remove personal data',
    },
    ...scopeOptions,
    ...storeOptions,
  },
  async run({ args, options, terminal }) {
    const [given] = args;
    if ((given === undefined) === (options.all !== true)) {
      throw usageError('Name a session, or use --all.', 'export');
    }
    if (options['as-test'] !== undefined && options.out !== undefined) {
      throw usageError('Use either --as-test or --out, not both.', 'export');
    }
    const transform = await loadTransform(options.transform, terminal.cwd);
    const open = await openStore(options, terminal);
    const file =
      options.out === undefined ? undefined : createWriteStream(resolve(terminal.cwd, options.out));
    try {
      let written = 0;
      const tests = testWriter(options, terminal);
      const write = (document: SessionExport): void => {
        const line = `${JSON.stringify(document)}\n`;
        if (file) file.write(line);
        else terminal.write(line);
        terminal.progress(`Exported ${++written} …`);
      };
      for (const [scope, id] of await selected(open, options, given)) {
        const found = await open.maintenance.exportSession(scope, id);
        const document = found && transform ? await redactExport(found, transform) : found;
        if (document && tests !== undefined) await tests(document);
        else if (document) write(document);
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
): Promise<RedactText | undefined> {
  if (file === undefined) return undefined;
  const module = (await import(pathToFileURL(resolve(cwd, file)).href)) as { default?: unknown };
  if (typeof module.default === 'function') return module.default as RedactText;
  throw usageError(`${file} has no default export that is a function.`, 'export');
}

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
