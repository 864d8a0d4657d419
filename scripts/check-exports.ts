/**
 * Checks that no name stands for two things in the public entries: a name that several entries export must be the same
 * declaration in all of them. Prints every violation and exits 1 if there is one.
 */
import { readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');

interface Named {
  readonly name: string;
  /** The file that declares it, and its name there. */
  readonly source: string;
}

/** What a file re-exports: `export { a, type B as C } from './d.ts'`. */
function reexportsOf(file: string): readonly Named[] {
  const text = readFileSync(file, 'utf8');
  return [...text.matchAll(/^export (?:type )?\{([^}]*)\} from '(\.[^']*)';/gm)].flatMap(
    ([, names = '', from = '']) =>
      names
        .split(',')
        .map((each) => each.trim().replace(/^type /, ''))
        .filter((each) => each !== '')
        .map((each) => {
          const [local = '', name = local] = each.split(' as ');
          return { name, source: declarationOf(join(dirname(file), from), local) };
        }),
  );
}

/** Where a name of a file is declared, which may be a file that it re-exports from. */
function declarationOf(file: string, name: string): string {
  const passedOn = reexportsOf(file).find((each) => each.name === name);
  if (passedOn !== undefined) return passedOn.source;
  const whole = wholeFilesOf(file).find((each) => declares(each, name));
  return whole === undefined ? `${relative(root, file)}#${name}` : declarationOf(whole, name);
}

/** The files that a file re-exports as a whole: `export type * from './d.ts'`. */
function wholeFilesOf(file: string): readonly string[] {
  const text = readFileSync(file, 'utf8');
  return Array.from(text.matchAll(/^export (?:type )?\* from '(\.[^']*)';/gm), ([, from = '']) =>
    join(dirname(file), from),
  );
}

function declares(file: string, name: string): boolean {
  return new RegExp(`^export \\w+ ${name}\\b`, 'm').test(readFileSync(file, 'utf8'));
}

const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')) as {
  readonly compilerOptions: { readonly paths: Readonly<Record<string, readonly string[]>> };
};
const sources = new Map<string, Map<string, string>>();
for (const [entry, [file = '']] of Object.entries(compilerOptions.paths)) {
  for (const { name, source } of reexportsOf(join(root, file))) {
    const entries = sources.get(name) ?? new Map<string, string>();
    sources.set(name, entries.set(source, entry));
  }
}
let ambiguous = 0;
for (const [name, declarations] of sources) {
  if (declarations.size === 1) continue;
  ambiguous++;
  const places = [...declarations].map(([source, entry]) => `${source} in "${entry}"`);
  console.error(`"${name}" stands for ${declarations.size} things: ${places.join(', ')}.`);
}
if (ambiguous > 0) process.exitCode = 1;
else console.log(`Each of the ${sources.size} public names stands for one thing.`);
