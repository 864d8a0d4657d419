/**
 * Checks the import direction: a folder may import only from those named for it here, folders that run in a browser load no
 * Node module, there is no import cycle, and nothing uses `export *`. Prints every violation and exits 1 if there is one.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
const src = join(root, 'src');

/** What each folder may import besides itself. A folder that is not named here belongs to the one above it. */
const folders: Readonly<Record<string, readonly string[]>> = {
  core: [],
  protocol: ['core'],
  api: ['core', 'protocol'],
  generate: ['core', 'protocol'],
  session: ['core', 'protocol'],
  'store/contract': ['core', 'protocol', 'session'],
  'store/rules': ['core', 'protocol', 'session', 'store/contract'],
  'store/memory': ['core', 'protocol', 'session', 'store/contract', 'store/rules'],
  store: ['core', 'protocol', 'session', 'store/contract', 'store/rules', 'store/memory'],
  agent: [
    'core',
    'protocol',
    'api',
    'generate',
    'session',
    'store/contract',
    'store/rules',
    'workspace/contract',
  ],
  engine: ['core', 'protocol', 'api', 'session', 'store/contract', 'agent'],
  server: [
    'core',
    'protocol',
    'api',
    'generate',
    'session',
    'store/contract',
    'store/rules',
    'workspace/contract',
    'agent',
    'webhook',
    'replay',
    'mcp',
    'acp',
  ],
  webhook: ['core', 'protocol', 'agent'],
  mcp: ['core', 'protocol', 'generate'],
  replay: [
    'core',
    'protocol',
    'generate',
    'session',
    'store/contract',
    'store/memory',
    'agent',
    'workspace',
    'workspace/contract',
    '.',
  ],
  prices: ['core', 'protocol', 'generate'],
  'workspace/contract': ['core'],
  workspace: ['core', 'protocol', 'generate', 'workspace/contract'],
  sql: ['store'],
  'durable-object': ['core', 'store', 'engine'],
  messages: ['core', 'protocol', 'generate'],
  a2a: ['core', 'protocol', 'generate', 'client'],
  acp: [
    'core',
    'protocol',
    'session',
    'store/contract',
    'agent',
    'workspace',
    'workspace/contract',
  ],
  client: ['core', 'protocol', 'api'],
  react: ['core', 'protocol', 'api', 'client'],
  testing: [
    'core',
    'protocol',
    'api',
    'generate',
    'session',
    'store/contract',
    'store/rules',
    'store/memory',
    'workspace/contract',
    'agent',
    'engine',
    'replay',
    '.',
  ],
  cli: [
    'core',
    'protocol',
    'api',
    'generate',
    'session',
    'store/contract',
    'store/rules',
    'store',
    'agent',
    'engine',
    'server',
    'client',
    'mcp',
    'acp',
    'replay',
    'testing',
    '.',
  ],
  '.': [
    'core',
    'protocol',
    'api',
    'generate',
    'session',
    'store/contract',
    'store/rules',
    'store/memory',
    'agent',
    'engine',
    'webhook',
  ],
};

/** Folders that must load without Node. */
const portable = new Set([
  'core',
  'protocol',
  'api',
  'generate',
  'session',
  'store/contract',
  'store/rules',
  'store/memory',
  'workspace/contract',
  'agent',
  'engine',
  'webhook',
  'client',
  'react',
]);

/** Types are erased, so a folder may name a type of one above it where the two sides of a wire must agree. */
const typesFrom: Readonly<Record<string, readonly string[]>> = {
  api: ['store/contract'],
  client: ['agent', 'session', 'store/contract', 'generate'],
  react: ['agent', 'session', 'store/contract'],
  server: ['.'],
};

/**
 * The order inside a folder, lowest first: a file or folder may import itself and what stands in an earlier line, but not its
 * neighbours in the same line.
 */
const layers: readonly (readonly (readonly string[])[])[] = [
  [
    ['core/json/types.ts', 'core/diff.ts'],
    ['core/error.ts'],
    ['core/platform.ts', 'core/closest.ts'],
    ['core/json', 'core/async'],
    ['core/time.ts', 'core/schema'],
    ['core/id.ts', 'core/registry.ts', 'core/options.ts', 'core/metrics.ts', 'core/trace-names.ts'],
    ['core/trace.ts', 'core/action.ts'],
  ],
  [
    ['agent/contract'],
    ['agent/persistence'],
    ['agent/turn'],
    ['agent/connection'],
    ['agent/define'],
  ],
  [
    ['server/http'],
    ['server/stream'],
    [
      'server/native',
      'server/genkit',
      'server/ui-stream',
      'server/mcp',
      'server/a2a',
      'server/acp',
      'server/agui',
      'server/studio',
    ],
    ['server/reflection'],
    ['server'],
  ],
];

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

/** Where a file stands in an order: the rank, and the file or folder it belongs to. */
function layerOf(
  order: (typeof layers)[number],
  path: string,
): { rank: number; part: string } | undefined {
  const below = relative(src, path);
  let found: { rank: number; part: string } | undefined;
  for (const [rank, parts] of order.entries()) {
    for (const part of parts) {
      const holds = below === part || below.startsWith(`${part}/`);
      if (holds && part.length > (found?.part.length ?? 0)) found = { rank, part };
    }
  }
  return found;
}

/** Why an import breaks the order inside a folder; `undefined` when it does not. */
function layerBreach(file: string, target: string): string | undefined {
  for (const order of layers) {
    const from = layerOf(order, file);
    const to = layerOf(order, target);
    if (!from || !to || from.part === to.part || to.rank < from.rank) continue;
    return `${from.part} may not import ${to.part}`;
  }
  return undefined;
}

/** The cycles of a graph of imports, types included. */
function cyclesIn(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const order = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const cycles: string[][] = [];
  // Tarjan's strongly connected components.
  const visit = (file: string): number => {
    const mine = order.size;
    order.set(file, mine);
    stack.push(file);
    let least = mine;
    for (const next of graph.get(file) ?? []) {
      if (!order.has(next)) least = Math.min(least, visit(next));
      else if (stack.includes(next))
        least = Math.min(least, low.get(next) ?? order.get(next) ?? mine);
      low.set(file, least);
    }
    if (least === mine) {
      const members = stack.splice(stack.indexOf(file));
      if (members.length > 1) cycles.push(members);
    }
    return least;
  };
  for (const file of graph.keys()) if (!order.has(file)) visit(file);
  return cycles;
}

/** The folders whose parts import each other in one direction only. A file of such a folder is a part by itself. */
const parentsOfFolders = [
  'src',
  'src/core',
  'src/agent',
  'src/cli',
  'src/engine',
  'src/generate',
  'src/server',
  'src/store',
  'src/store/sql',
  'src/replay',
  'src/testing',
];

/** The imports between the folders of a folder. Its own files, such as an entry, may import any of them. */
function foldersIn(
  parent: string,
  files: ReadonlyMap<string, readonly string[]>,
): Map<string, string[]> {
  const folderIn = (file: string): string | undefined => {
    const [name, ...rest] = relative(join(root, parent), file).split('/');
    return name === '..' || rest.length === 0 ? undefined : name;
  };
  const found = new Map<string, Set<string>>();
  for (const [file, imports] of files) {
    const from = folderIn(file);
    if (from === undefined) continue;
    const targets = found.get(from) ?? new Set();
    found.set(from, targets);
    for (const target of imports.map(folderIn)) {
      if (target !== undefined && target !== from) targets.add(target);
    }
  }
  return new Map([...found].map(([from, targets]) => [from, [...targets]]));
}

const breaches: string[] = [];
const graph = new Map<string, string[]>();
for (const file of [...filesBelow(src), ...filesBelow(join(root, 'studio/src'))]) {
  const specifiers = importsOf(readFileSync(file, 'utf8')).map(({ specifier }) => specifier);
  const local = specifiers.filter((specifier) => /^\..*\.tsx?$/.test(specifier));
  graph.set(file, [...new Set(local.map((specifier) => resolve(dirname(file), specifier)))]);
}
for (const cycle of cyclesIn(graph)) {
  breaches.push(`Import cycle: ${cycle.map((file) => relative(root, file)).join(', ')}`);
}
for (const parent of parentsOfFolders) {
  for (const cycle of cyclesIn(foldersIn(parent, graph))) {
    breaches.push(`Import cycle between folders of ${parent}: ${cycle.join(', ')}`);
  }
}
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
    const layer = layerBreach(file, resolve(dirname(file), specifier));
    if (layer) breaches.push(`${where}: ${layer} (${specifier})`);
  }
}
if (breaches.length > 0) {
  console.error(breaches.join('\n'));
  process.exitCode = 1;
} else {
  console.log('Imports point down only.');
}
