/**
 * Holds the house to its map: a room may import only from those named for it here, the rooms that run in a browser load no
 * Node module, and nothing but an entry names what others export. Prints every breach and exits 1 if there is one.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
const src = join(root, 'src');

/** What each room may import besides itself. */
const rooms: Readonly<Record<string, readonly string[]>> = {
  core: [],
  protocol: ['core'],
  generate: ['core', 'protocol'],
  session: ['core', 'protocol', 'generate'],
  agent: ['core', 'protocol', 'generate', 'session'],
  store: ['core', 'protocol', 'session', 'agent'],
  engine: ['core', 'protocol', 'session', 'agent'],
  server: ['core', 'protocol', 'generate', 'session', 'agent'],
  client: ['core', 'protocol'],
  react: ['core', 'protocol', 'client'],
  testing: ['core', 'protocol', 'generate', 'session', 'agent', 'engine', '.'],
  cli: [
    'core',
    'protocol',
    'generate',
    'session',
    'agent',
    'store',
    'engine',
    'server',
    'client',
    '.',
  ],
  '.': ['core', 'protocol', 'generate', 'session', 'agent', 'engine'],
};

/** Rooms that must load without Node. */
const portable = new Set([
  'core',
  'protocol',
  'generate',
  'session',
  'agent',
  'engine',
  'client',
  'react',
]);

/** Types are erased, so a room may name a type of a room above it where the two sides of a wire must agree. */
const typesFrom: Readonly<Record<string, readonly string[]>> = {
  client: ['agent', 'session', 'generate'],
  react: ['agent', 'session'],
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

function roomOf(path: string): string {
  const [room = '.', ...rest] = relative(src, path).split('/');
  return rest.length === 0 ? '.' : room;
}

const breaches: string[] = [];
for (const file of filesBelow(src)) {
  const room = roomOf(file);
  const text = readFileSync(file, 'utf8');
  const where = relative(root, file);
  if (/^export \*/m.test(text)) breaches.push(`${where}: no \`export *\``);
  for (const { specifier, typeOnly } of importsOf(text)) {
    if (specifier.startsWith('node:') && portable.has(room) && !typeOnly) {
      breaches.push(`${where}: ${room} must load without Node, but imports ${specifier}`);
    }
    if (!specifier.startsWith('.')) continue;
    const target = roomOf(resolve(dirname(file), specifier));
    const allowed = rooms[room] ?? [];
    const asType = typeOnly && (typesFrom[room] ?? []).includes(target);
    if (target !== room && !allowed.includes(target) && !asType) {
      breaches.push(`${where}: ${room} may not import ${target} (${specifier})`);
    }
  }
}
if (breaches.length > 0) {
  console.error(breaches.join('\n'));
  process.exitCode = 1;
} else {
  console.log('Imports point down only.');
}
