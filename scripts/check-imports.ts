/**
 * Checks the import direction: a folder may import only from those named for it here, folders that run in a browser load no
 * Node module, and nothing uses `export *`. Prints every violation and exits 1 if there is one.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
const src = join(root, 'src');

/** What each folder may import besides itself. A folder that is not named here belongs to the one above it. */
const folders: Readonly<Record<string, readonly string[]>> = {
  core: [],
  protocol: ['core'],
  generate: ['core', 'protocol'],
  session: ['core', 'protocol', 'generate', 'store/contract', 'store/rules'],
  'store/contract': ['core', 'protocol', 'session'],
  'store/rules': ['core', 'protocol', 'store/contract'],
  'store/memory': ['core', 'protocol', 'session', 'store/contract', 'store/rules'],
  store: ['core', 'protocol', 'session', 'store/contract', 'store/rules', 'store/memory'],
  agent: ['core', 'protocol', 'generate', 'session', 'store/contract', 'store/rules'],
  engine: ['core', 'protocol', 'session', 'store/contract', 'agent'],
  server: ['core', 'protocol', 'generate', 'session', 'store/contract', 'store/rules', 'agent'],
  client: ['core', 'protocol'],
  react: ['core', 'protocol', 'client'],
  testing: [
    'core',
    'protocol',
    'generate',
    'session',
    'store/contract',
    'store/rules',
    'agent',
    'engine',
    '.',
  ],
  cli: [
    'core',
    'protocol',
    'generate',
    'session',
    'store/contract',
    'store',
    'agent',
    'engine',
    'server',
    'client',
    '.',
  ],
  '.': [
    'core',
    'protocol',
    'generate',
    'session',
    'store/contract',
    'store/rules',
    'store/memory',
    'agent',
    'engine',
  ],
};

/** Folders that must load without Node. */
const portable = new Set([
  'core',
  'protocol',
  'generate',
  'session',
  'store/contract',
  'store/rules',
  'store/memory',
  'agent',
  'engine',
  'client',
  'react',
]);

/** Types are erased, so a folder may name a type of one above it where the two sides of a wire must agree. */
const typesFrom: Readonly<Record<string, readonly string[]>> = {
  client: ['agent', 'session', 'store/contract', 'generate'],
  react: ['agent', 'session', 'store/contract'],
  server: ['.'],
};

interface Import {
  readonly specifier: string;
  readonly typeOnly: boolean;
}

function filesBelow(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return filesBelow(path);
    return /\.tsx?$/.test(entry.name) && !/\.test(-d)?\.tsx?$/.test(entry.name) ? [path] : [];
  });
}

function importsOf(text: string): Import[] {
  const found: Import[] = [];
  const statement =
    /^\s*(import|export)\s(type\s)?([^'";]*?)from\s+'([^']+)'|^\s*import\s+'([^']+)'|(?:typeof )?import\('([^']+)'\)/gm;
  for (const [whole, , type, names = '', from, bare, dynamic] of text.matchAll(statement)) {
    const inlineTypes = /^\{[^}]*\}/.test(names.trim()) && !/(?:[{,]\s*)(?!type\s)\w/.test(names);
    const typeOnly = type !== undefined || inlineTypes || whole.includes('typeof import(');
    found.push({ specifier: from ?? bare ?? dynamic ?? '', typeOnly });
  }
  return found;
}

function folderOf(path: string): string {
  const parts = relative(src, path).split('/').slice(0, -1);
  const named = [parts.slice(0, 2).join('/'), parts[0] ?? ''].find((name) => name in folders);
  return named ?? '.';
}

const breaches: string[] = [];
for (const file of filesBelow(src)) {
  const folder = folderOf(file);
  const text = readFileSync(file, 'utf8');
  const where = relative(root, file);
  if (/^export \*/m.test(text)) breaches.push(`${where}: no \`export *\``);
  for (const { specifier, typeOnly } of importsOf(text)) {
    if (specifier.startsWith('node:') && portable.has(folder) && !typeOnly) {
      breaches.push(`${where}: ${folder} must load without Node, but imports ${specifier}`);
    }
    if (!specifier.startsWith('.')) continue;
    const target = folderOf(resolve(dirname(file), specifier));
    const allowed = folders[folder] ?? [];
    const asType = typeOnly && (typesFrom[folder] ?? []).includes(target);
    if (target !== folder && !allowed.includes(target) && !asType) {
      breaches.push(`${where}: ${folder} may not import ${target} (${specifier})`);
    }
  }
}
if (breaches.length > 0) {
  console.error(breaches.join('\n'));
  process.exitCode = 1;
} else {
  console.log('Imports point down only.');
}
