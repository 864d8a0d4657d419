/** Holds the pages to the code: what is taken from files is up to date, what is named exists. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { membersOf, propertiesOf } from '../../scripts/docs/options-table.ts';
import { pages } from '../../scripts/docs/pages.ts';
import { regionsOf } from '../../scripts/docs/regions.ts';
import { renderPage } from '../../scripts/docs/render.ts';
import { groups } from '../../src/cli/commands.ts';
import { exitCode } from '../../src/cli/exit-code.ts';
import { parseArguments } from '../../src/cli/parse-arguments.ts';
import { httpStatus } from '../../src/protocol/http-status.ts';
import { snapshotStatus } from '../../src/protocol/snapshot.ts';
import { finishReason } from '../../src/protocol/turn.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const all = pages(root);
const manifest = JSON.parse(read('package.json')) as {
  readonly scripts: Record<string, string>;
  readonly exports: Record<string, { readonly types?: string }>;
};
const commands = groups.flatMap(([, list]) => list);

interface Block {
  readonly page: string;
  readonly language: string;
  readonly text: string;
  /** What stands on the line before it. */
  readonly before: string;
}

const blocks: readonly Block[] = all.flatMap((page) =>
  [...read(page).matchAll(/(?:^|\n)([^\n]*)\n```(\w*)\n([\s\S]*?)```/g)].map(
    ([, before = '', language = '', text = '']) => ({ page, before, language, text }),
  ),
);

describe('the pages', () => {
  test.each(all)('%s has everything that is taken from files as it is there', (page) => {
    // Out of date? npm run docs
    expect(read(page)).toBe(renderPage(read(page), root));
  });

  test('hold no code that is not taken from a file that runs, and JSON that can be parsed', () => {
    for (const { text } of blocks.filter(({ language }) => language === 'json')) JSON.parse(text);
    const written = blocks.filter(
      ({ language, before }) =>
        !['sh', 'text', 'json', 'lua'].includes(language) && !before.startsWith('<!-- code:'),
    );
    expect(written.map(({ page, text }) => `${page}: ${text.slice(0, 80)}`)).toEqual([]);
  });

  test('use every region of every snippet', () => {
    const used = new Set(
      [...all, 'site/home/index.md'].flatMap((page) =>
        [...read(page).matchAll(/<!-- code: (\S+) -->/g)].map(([, name]) => name),
      ),
    );
    const snippets = readdirSync(join(root, 'docs/snippets'));
    const regions = snippets.flatMap((name) =>
      regionsOf(join(root, 'docs/snippets', name)).map((region) => `${name}#${region}`),
    );
    expect(regions.filter((region) => !used.has(region))).toEqual([]);
  });

  test.each(['AGENTS.md', 'CONTRIBUTING.md', 'docs/architecture.md'])(
    '%s names files and folders that exist',
    (page) => {
      const named = [...read(page).matchAll(/`([a-z0-9-]+\/[^\s`*<]+)`/g)]
        .flatMap(([, path = '']) => expanded(path))
        .filter((path) => existsSync(join(root, path.split('/')[0] ?? '')));
      expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
      if (page === 'AGENTS.md') expect(named.length).toBeGreaterThan(50);
    },
  );

  test('have links that lead somewhere', () => {
    const broken = all.flatMap((page) => brokenLinks(page).map((link) => `${page}: ${link}`));
    expect(broken).toEqual([]);
  });
});

/** `a/{b,c}.ts` as `a/b.ts` and `a/c.ts`. */
function expanded(path: string): string[] {
  const [whole, choices] = /\{([^}]*)\}/.exec(path) ?? [];
  if (whole === undefined || choices === undefined) return [path];
  return choices.split(',').map((each) => path.replace(whole, each));
}

function brokenLinks(page: string): string[] {
  const text = read(page).replace(/```[\s\S]*?```/g, '');
  const links = [...text.matchAll(/\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"/g)].map(
    ([, link, source]) => link ?? source ?? '',
  );
  return links.filter((link) => {
    if (/^https?:/.test(link)) return false;
    const [file = '', anchor] = link.split('#');
    const target = file === '' ? page : join(dirname(page), file);
    // Made by the studio's script, which the walk through the studio runs.
    if (/images\/studio-(light|dark)\.png$/.test(target)) return false;
    if (!existsSync(join(root, target))) return true;
    return anchor !== undefined && !anchorsOf(read(target)).has(anchor);
  });
}

function anchorsOf(text: string): Set<string> {
  return new Set(
    [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
      title
        .toLowerCase()
        .replace(/[^\p{L}\p{N} _-]/gu, '')
        .replaceAll(' ', '-'),
    ),
  );
}

describe('commands in the pages', () => {
  const otherPrograms = [
    'bunx',
    'cd',
    'claude',
    'deno',
    'export',
    'node',
    'pg_dump',
    'pg_restore',
    'vitest',
    '@modelcontextprotocol/inspector',
  ];
  const lines = blocks
    // http.test.ts sends the requests of curl.
    .filter(({ language, text }) => language === 'sh' && !text.startsWith('curl '))
    .flatMap(({ page, text }) =>
      text
        .split('\n')
        .filter((line) => line.trim() !== '')
        .map((line) => ({ page, line })),
    );

  test.each(lines)('$page: $line', ({ line }) => {
    const words = (line.replace(/\s+[#>].*$/, '').match(/"[^"]*"|'[^']*'|\S+/g) ?? []).map((word) =>
      word.replace(/^["']|["']$/g, ''),
    );
    const [program, ...rest] = words[0] === 'npx' ? words.slice(1) : words;
    if (program === 'npm') {
      const script = rest[0] === 'run' ? rest[1] : rest[0];
      expect([...Object.keys(manifest.scripts), 'ci', 'install']).toContain(script);
    } else if (program === 'waymark') {
      const [name = '', ...args] = rest;
      if (name.startsWith('--')) return;
      const command = commands.find((each) => each.name === name);
      expect(command, `the command ${name}`).toBeDefined();
      if (command) expect(() => parseArguments(command, args)).not.toThrow();
    } else expect(otherPrograms).toContain(program);
  });
});

describe('the reference', () => {
  const reference = read('docs/reference.md');
  const tables = [...reference.matchAll(/<!-- (?:options|fields): (\S+?)#(\w+) -->/g)];

  test('has every property of every interface it shows', () => {
    for (const [, path = '', name = ''] of tables) {
      const properties = propertiesOf(join(root, path), name);
      expect(properties, name).not.toEqual([]);
      for (const property of properties) {
        expect(reference).toContain(`| \`${property.name}\``);
        expect(property.name).not.toBe('');
      }
    }
    expect(tables.length).toBeGreaterThan(30);
  });

  test('has every options type that the package exports', () => {
    const entries = Object.values(manifest.exports)
      .flatMap(({ types }) => (types === undefined ? [] : [types]))
      .map((path) => path.replace('./dist/types/', 'src/').replace('.d.ts', '.ts'));
    const exported = new Set(
      entries.flatMap((entry) => read(entry).match(/\b\w+Options\b/g) ?? []),
    );
    const shown = new Set(tables.map(([, , name]) => name));
    // The same table under another name: the types behind an intersection or an extension without anything of its own.
    const elsewhere = ['PostgresStoreOptions', 'PgBossEngineOptions', 'PgliteStoreOptions'];
    const missing = [...exported].filter((name) => !shown.has(name) && !elsewhere.includes(name));
    expect(missing).toEqual([]);
  });

  test.each([
    ['src/api/agent-api.ts', 'AgentApi', 'Methods of an agent'],
    ['src/api/agent-api.ts', 'RunHandle', 'Methods of a run handle'],
    ['src/api/agent-api.ts', 'Chat', 'Methods of a chat'],
    ['src/api/types.ts', 'AgentConnection', 'Methods of a connection'],
    ['src/app.ts', 'App', 'Methods of the app'],
  ])('%s: has every method of %s under "%s"', (path, name, heading) => {
    const section = reference.split(`### ${heading}\n`)[1]?.split(/^##/m)[0] ?? '';
    const methods = membersOf(join(root, path), name).map((member) => member.name);
    expect(methods.length).toBeGreaterThan(4);
    expect(methods.filter((method) => !section.includes(`\`${method}(`))).toEqual([]);
  });

  test('has every error status with its HTTP status', () => {
    for (const [status, http] of Object.entries(httpStatus)) {
      expect(reference).toMatch(new RegExp(`\\| \`${status}\` \\| ${http}`));
    }
  });

  test('has every finish reason and every snapshot status', () => {
    for (const name of [...finishReason.options, ...snapshotStatus.options]) {
      expect(reference).toContain(`\`${name}\``);
    }
  });

  test('the command line’s has every exit code', () => {
    const page = read('docs/cli.md');
    for (const code of Object.values(exitCode))
      expect(page).toMatch(new RegExp(`^\\| ${code} \\|`, 'm'));
  });
});

test('every example agent and every page is named where a reader looks for it', () => {
  const index = read('docs/README.md');
  for (const page of all.filter((name) => /^docs\/[a-z-]+\.md$/.test(name))) {
    expect(index).toContain(page.replace('docs/', ''));
  }
});
