/**
 * Checks that users can name the types of public signatures: a type that an exported declaration mentions must be exported by
 * an entry, unless it is private to its file. Exits with 1 if one is missing.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
// The declarations as they are published have no function bodies, whose types do not matter here.
const types = mkdtempSync(join(tmpdir(), 'waymark-types-'));
process.once('exit', () => rmSync(types, { recursive: true, force: true }));
const tsc = join(root, 'node_modules/.bin/tsc');
execFileSync(tsc, ['-p', 'tsconfig.build.json', '--outDir', types], {
  cwd: root,
  stdio: 'inherit',
});

/** Parts of this package that a signature passes on, and types that are exported under another name. */
const excepted = new Set([
  'agent/define/resume-run.d.ts#ResumeOptions',
  'core/registry.d.ts#Registry',
  'generate/answer/response.d.ts#OutputOf',
  'generate/generator.d.ts#Definer',
  'server/http/connection.d.ts#NodeBindings',
  'session/compact-history.d.ts#CompactMessage',
  'session/compact-history.d.ts#Link',
]);

/** A declaration of a name, and the names it mentions. */
interface Declared {
  readonly id: string;
  readonly mentions: readonly string[];
}

interface Module {
  /** Names that are imported or passed on, with the file and name they come from. */
  readonly from: ReadonlyMap<string, readonly [string, string]>;
  /** The files whose names are all passed on: `export type * from './d.ts'`. */
  readonly whole: readonly string[];
  /** The text of each declaration; that of an exported one begins with `export`. */
  readonly declared: ReadonlyMap<string, string>;
}

const modules = new Map<string, Module>();

function moduleOf(file: string): Module {
  const known = modules.get(file);
  if (known) return known;
  const module = parse(file);
  modules.set(file, module);
  return module;
}

function parse(file: string): Module {
  const text = readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, '');
  const from = new Map<string, readonly [string, string]>();
  for (const [, names = '', path = ''] of text.matchAll(
    /^(?:import|export) (?:type )?\{([^}]*)\} from '(\.[^']*)';/gm,
  )) {
    for (const each of names.split(',').map((name) => name.trim().replace(/^type /, ''))) {
      if (each === '') continue;
      const [outer = '', inner = outer] = each.split(' as ');
      from.set(inner, [declarationsOf(file, path), outer]);
    }
  }
  const whole = Array.from(
    text.matchAll(/^export (?:type )?\* from '(\.[^']*)';/gm),
    ([, path = '']) => declarationsOf(file, path),
  );
  const declared = new Map<string, string>();
  const heads = [
    ...text.matchAll(
      /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|function|const|enum) (\w+)/gm,
    ),
  ];
  heads.forEach((head, at) => {
    const [, name = ''] = head;
    const body = text.slice(head.index, heads[at + 1]?.index ?? text.length);
    declared.set(name, `${declared.get(name) ?? ''}${body}`);
  });
  return { from, whole, declared };
}

/** The file with the declarations that an import or export in another file names. */
function declarationsOf(file: string, path: string): string {
  return resolve(dirname(file), path.replace(/\.(js|ts)$/, '.d.ts'));
}

/** Where a name of a file is declared. */
function resolveName(file: string, name: string): readonly [string, string] | undefined {
  if (!existsSync(file)) return undefined;
  const { from, whole, declared } = moduleOf(file);
  if (declared.has(name)) return [file, name];
  const origin = from.get(name);
  if (origin !== undefined) return resolveName(...origin);
  return whole.map((each) => resolveName(each, name)).find((found) => found !== undefined);
}

function declarationAt(file: string, name: string): Declared {
  const { from, declared } = moduleOf(file);
  const body = (declared.get(name) ?? '')
    .replace(/'[^'\n]*'|`[^`]*`/g, '')
    // Names of properties and parameters are no types.
    .replace(/\b\w+\??:(?!:)/g, '');
  const mentions = [...new Set(body.match(/\b[A-Z]\w*\b/g) ?? [])].filter(
    (each) => each !== name && (from.has(each) || declared.has(each)),
  );
  const ids = mentions.flatMap((each) => {
    const found = resolveName(file, each);
    return found && isExported(...found) ? [idOf(...found)] : [];
  });
  return { id: idOf(file, name), mentions: ids };
}

const isExported = (file: string, name: string): boolean =>
  moduleOf(file).declared.get(name)?.startsWith('export ') === true;

const idOf = (file: string, name: string): string => `${relative(types, file)}#${name}`;

const { exports } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly exports: Readonly<Record<string, { readonly types?: string }>>;
};
const entries = Object.entries(exports).flatMap(([entry, { types: path }]) => {
  if (path === undefined) return [];
  const file = join(types, relative('./dist/types', path));
  const { from, declared } = moduleOf(file);
  const declarations = [...from.keys(), ...declared.keys()].flatMap((name) => {
    const found = resolveName(file, name);
    return found ? [declarationAt(...found)] : [];
  });
  return [{ entry, declarations }];
});
const exported = new Set(entries.flatMap(({ declarations }) => declarations.map(({ id }) => id)));
const missing = new Map<string, string>();
for (const { entry, declarations } of entries) {
  for (const { id, mentions } of declarations) {
    for (const each of mentions) {
      if (!exported.has(each) && !excepted.has(each)) missing.set(each, `${id} of "${entry}"`);
    }
  }
}
for (const [each, place] of missing)
  console.error(`${each} is mentioned by ${place}: export it, too.`);
if (missing.size > 0) process.exitCode = 1;
else
  console.log(
    `The signatures of ${exported.size} public declarations mention exported types only.`,
  );
