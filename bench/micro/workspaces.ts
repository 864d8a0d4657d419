// What it costs to keep the files of a workspace with every turn, next to a shadow git repository on the same tree:
// `node bench/micro/workspaces.ts [--turns 200] [--files 10000] [--store sqlite|file|memory|postgres://…]`. In each turn a shell changes three files, of
// three folders. After each turn, and after each restore, the tree is hashed by code that shares nothing with the package.
import { execFile, execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { DatabaseSync } from 'node:sqlite';
import { parseArgs, promisify } from 'node:util';
import { memoryStore, type Store, tool, waymark } from '../../src/index.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { directory } from '../../src/workspace/index.ts';

const { values } = parseArgs({
  options: {
    turns: { type: 'string', default: '200' },
    files: { type: 'string', default: '10000' },
    bytes: { type: 'string', default: '200000000' },
    store: { type: 'string', default: 'sqlite' },
  },
});
const turns = Number(values.turns);
const files = Number(values.files);
const fileBytes = Math.round(Number(values.bytes) / files);
const perFolder = 40;

const base = mkdtempSync(join(tmpdir(), 'waymark-workspaces-'));
const root = join(base, 'project');
const stored = join(base, 'stored');
process.once('exit', () => rmSync(base, { recursive: true, force: true }));

const folderOf = (at: number): string =>
  `f${Math.floor(at / perFolder / perFolder)}/g${Math.floor(at / perFolder)}`;
const pathOf = (at: number): string => `${folderOf(at)}/file-${at}.txt`;
for (let at = 0; at < files; at++) {
  if (at % perFolder === 0) mkdirSync(join(root, folderOf(at)), { recursive: true });
  writeFileSync(join(root, pathOf(at)), randomBytes(fileBytes), {
    mode: at % 50 === 0 ? 0o755 : 0o644,
  });
}
symlinkSync(pathOf(0), join(root, 'link'));
mkdirSync(join(root, 'empty'));
writeFileSync(join(root, '.gitignore'), '*.log\nbuild/\n');

const git = (...args: readonly string[]): void => {
  const env = { ...process.env, GIT_DIR: join(base, 'shadow.git'), GIT_WORK_TREE: root };
  const config = [
    '-c',
    'user.name=a',
    '-c',
    'user.email=a@b',
    '-c',
    'gc.auto=0',
    '-c',
    'core.excludesFile=/dev/null',
  ];
  execFileSync('git', [...config, ...args], { cwd: root, env, stdio: 'ignore' });
};
git('init', '-q');
writeFileSync(join(base, 'shadow.git/info/exclude'), '.waymark\n');

let turn = 0;
/** Changes three files through a shell, as an agent does. Random bytes do not compress, and share no chunk with those before. */
async function change(to: string): Promise<void> {
  const commands = Array.from({ length: 3 }, (_, nth) => {
    const path = pathOf((turn * 977 + nth * 3_331) % files);
    return `mkdir -p $(dirname ${path}); head -c ${fileBytes} /dev/urandom > ${path}`;
  });
  await promisify(execFile)('sh', ['-c', commands.join('\n')], { cwd: to });
}
const changed = 3 * fileBytes;

const actIn = (to: string) =>
  tool({ name: 'act', description: 'Changes files.' }, async () => await change(to));
const reply = {
  patterns: [[/change/, { toolCalls: [{ name: 'act' }] }]],
  otherwise: 'Done.',
  afterTools: () => 'Done.',
} as const;
const store: Store =
  values.store === 'memory'
    ? memoryStore()
    : values.store === 'file'
      ? fileStore(stored)
      : values.store === 'sqlite'
        ? sqliteStore(stored)
        : (await import('../../src/store/postgres/index.ts')).postgresStore({
            connectionString: values.store,
            schema: `workspaces_${process.pid}`,
          });
const app = waymark({ store, model: scriptedModel(reply), work: false });
const workspace = directory(root);
const coder = app.defineAgent({ name: 'coder', workspace, tools: [actIn(root)] });
// The same turn, in a folder that is no workspace.
const scratch = join(base, 'scratch');
mkdirSync(scratch);
const plain = app.defineAgent({ name: 'plain', tools: [actIn(scratch)] });

const times = {
  first: 0,
  turn: [] as number[],
  without: [] as number[],
  git: [] as number[],
  restore: [] as number[],
  scan: [] as number[],
  delay: [] as number[],
};
const started = performance.now();
const first = await coder.run('hello');
times.first = performance.now() - started;
const firstGit = performance.now();
git('add', '-A');
git('commit', '-qm', 'first');
const gitFirst = performance.now() - firstGit;
const { sessionId } = first;
const other = await plain.run('hello');
const before = size();
const shots: { readonly id: string; readonly tree: string }[] = [];
const delay = monitorEventLoopDelay({ resolution: 1 });
const folder = await workspace.open({ agent: 'bench', sessionId: 'bench' });

for (turn = 1; turn <= turns; turn++) {
  // Each pair in turn, so that what else the machine does meets both. The change itself takes the same time in both.
  times.without.push(await timed(() => plain.run('change', { sessionId: other.sessionId })));
  delay.reset();
  delay.enable();
  let shot = '';
  times.turn.push(
    await timed(async () => {
      const output = await coder.run('change', { sessionId });
      shot = output.snapshotId ?? '';
    }),
  );
  delay.disable();
  times.delay.push(delay.max / 1e6);
  times.scan.push(await timed(() => folder.scan()));
  times.git.push(
    await timed(async () => {
      git('add', '-A');
      git('commit', '-qm', 'turn');
    }),
  );
  shots.push({ id: shot, tree: treeHash() });
}
const grown = size() - before;
let equal = 0;
for (const { id, tree } of shots.toReversed()) {
  times.restore.push(await timed(() => coder.restore(id)));
  if (treeHash() === tree) equal++;
}
const beforeFork = size();
const last = shots.at(-1)?.id ?? '';
const elsewhere = join(base, 'elsewhere');
const checkout = await timed(() => coder.checkout(last, elsewhere));
const fork = await coder.fork(last);
const forked = size() - beforeFork;
const isWhole = treeHash(elsewhere) === shots.at(-1)?.tree;
const problems = (await store.maintenance?.verify?.())?.length;

const capture = (median(times.turn) - median(times.without)) / captures();
report({
  machine: `${files} files of ${fileBytes} bytes, ${turns} turns, store ${values.store.slice(0, 8)}`,
  'first capture': `${times.first.toFixed(0)} ms, git ${gitFirst.toFixed(0)} ms`,
  'scan alone': `${median(times.scan).toFixed(1)} ms`,
  'one capture (a turn with a workspace less one without, by its captures)': `${capture.toFixed(1)} ms`,
  'git add -A && git commit': `${median(times.git).toFixed(1)} ms`,
  'capture / git': (capture / median(times.git)).toFixed(2),
  'longest stop of the event loop in a turn': `median ${median(times.delay).toFixed(1)} ms, highest ${Math.max(...times.delay).toFixed(1)} ms`,
  'growth per turn': `${(grown / turns).toFixed(0)} bytes, of which ${changed} changed; ${((grown / turns - 16_384) / changed).toFixed(2)} x the changed bytes + 16 KB`,
  restore: `median ${median(times.restore).toFixed(1)} ms, highest ${Math.max(...times.restore).toFixed(1)} ms; ${equal} of ${shots.length} trees equal`,
  'checkout of all files': `${checkout.toFixed(0)} ms, ${isWhole ? 'equal' : 'DIFFERENT'}`,
  'bytes of a fork': `${forked} (session ${fork.sessionId.length > 0 ? 'made' : 'missing'})`,
  'problems that verify finds': String(problems),
});
await app.close();

/** A turn captures at its start, after its tool calls, and at its end. */
function captures(): number {
  return 3;
}

async function timed(work: () => unknown): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}

function report(rows: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(rows)) console.log(`${name}: ${value}`);
}

/** The bytes of the store on the disk, where it has some. */
function size(): number {
  if (values.store === 'sqlite') {
    const db = new DatabaseSync(stored);
    db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
    db.close();
    return statSync(stored).size;
  }
  if (values.store !== 'file') return 0;
  const names = readdirSync(stored, { recursive: true, encoding: 'utf8' });
  return names.reduce((sum, name) => sum + statSync(join(stored, name)).size, 0);
}

/** Content, modes, links and empty folders, by path. */
function treeHash(at = root): string {
  const hash = createHash('sha256');
  const walk = (path: string): void => {
    for (const name of readdirSync(join(at, path)).sort()) {
      const inner = join(path, name);
      if (inner === '.waymark') continue;
      const stat = lstatSync(join(at, inner));
      hash.update(`${inner}\0${stat.mode & 0o170100}\0`);
      if (stat.isSymbolicLink()) hash.update(readlinkSync(join(at, inner)));
      else if (stat.isDirectory()) walk(inner);
      else hash.update(readFileSync(join(at, inner)));
    }
  };
  walk('');
  return hash.digest('hex');
}
