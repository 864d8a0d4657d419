// What it costs to keep the files of a workspace with every turn, next to others on the same tree in the same run:
// `node bench/micro/workspaces.ts [--turns 200] [--files 10000] [--bytes 200000000] [--store sqlite|file|memory|postgres]`.
// In each turn a shell changes three files, of three folders. After each turn, and after each restore, the tree is hashed by code that
// shares nothing with the package.
import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chmodSync,
  cpSync,
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
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parseArgs, promisify } from 'node:util';
import { memoryStore, type Store, tool, waymark } from '../../src/index.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { directory } from '../../src/workspace/index.ts';
import { type Blocked, blockedBy } from '../lib/loop-block.ts';
import { databaseBytes, startPostgres } from '../lib/postgres.ts';
import { bytesIn, openAiSandbox, type Rival, shadowGit } from './workspace-rivals.ts';

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
/** Each of these turns is only watched for how long it stops the event loop, which would disturb times. */
const watchEvery = 5;
/** Turns of a rival that saves everything anew. */
const archives = 5;

const base = mkdtempSync(join(tmpdir(), 'waymark-workspaces-'));
// Postgres does not run as root, so another user must be able to enter.
chmodSync(base, 0o755);
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
const copied = join(base, 'copied');
cpSync(root, copied, { recursive: true, verbatimSymlinks: true });

let turn = 0;
/** Changes three files through a shell, as an agent does. Random bytes do not compress, and share no chunk with those before. */
async function change(to: string): Promise<void> {
  const commands = Array.from({ length: 3 }, (_, nth) => {
    const path = pathOf((turn * 977 + nth * 3_331) % files);
    return `mkdir -p $(dirname ${path}); head -c ${fileBytes} /dev/urandom > ${path}`;
  });
  await promisify(execFile)('sh', ['-c', commands.join('\n')], { cwd: to });
}

const actIn = (to: string) =>
  tool({ name: 'act', description: 'Changes files.' }, async () => await change(to));
const reply = {
  patterns: [[/change/, { toolCalls: [{ name: 'act' }] }]],
  otherwise: 'Done.',
  afterTools: () => 'Done.',
} as const;
const postgres = values.store === 'postgres' ? await startPostgres(base) : undefined;
const url = (await postgres?.createDatabase('workspaces')) ?? '';
const store = await openStore();
const app = waymark({ store, model: scriptedModel(reply), work: false });
const workspace = directory(root);
const coder = app.defineAgent({ name: 'coder', workspace, tools: [actIn(root)] });
// The same turn, in a folder that is no workspace.
const scratch = join(base, 'scratch');
mkdirSync(scratch);
const plain = app.defineAgent({ name: 'plain', tools: [actIn(scratch)] });

const times = {
  turn: [] as number[],
  without: [] as number[],
  git: [] as number[],
  restore: [] as number[],
  far: [] as number[],
  gitRestore: [] as number[],
  scan: [] as number[],
};
const blocked = { with: [] as Blocked[], without: [] as Blocked[], scan: [] as Blocked[] };

const firstAt = performance.now();
const first = await coder.run('hello');
const firstTime = performance.now() - firstAt;
const git = shadowGit(base, copied);
const gitFirst = await timed(() => git.save());
const { sessionId } = first;
const other = await plain.run('hello');
const before = await size();
const gitBefore = git.size();
const shots: { readonly id: string; readonly git: string; readonly tree: string }[] = [];
const folder = await workspace.open({ agent: 'bench', sessionId: 'bench' });
const runPlain = () => plain.run('change', { sessionId: other.sessionId });
let shot = '';
const runCoder = async (): Promise<void> => {
  shot = (await coder.run('change', { sessionId })).snapshotId ?? '';
};
for (turn = 1; turn <= turns; turn++) {
  // Each pair in turn, so that what else the machine does meets both. The change itself takes the same time in both.
  if (turn % watchEvery === 0) {
    blocked.without.push(await blockedBy(runPlain));
    blocked.with.push(await blockedBy(runCoder));
    blocked.scan.push(await blockedBy(() => folder.scan()));
  } else {
    times.without.push(await timed(runPlain));
    times.turn.push(await timed(runCoder));
    times.scan.push(await timed(() => folder.scan()));
  }
  await change(copied);
  let commit = '';
  const save = async (): Promise<void> => {
    commit = await git.save();
  };
  times.git.push(await timed(save));
  shots.push({ id: shot, git: commit, tree: treeHash() });
}
const grown = (await size()) - before;
const gitGrown = git.size() - gitBefore;

const capture = (median(times.turn) - median(times.without)) / captures();
const perTurn = grown / turns;
report({
  run: `${files} files of ${fileBytes} bytes, ${turns} turns, store ${values.store}, load average ${loadavg()[0]?.toFixed(1)}`,
  'first capture': `${firstTime.toFixed(0)} ms, git ${gitFirst.toFixed(0)} ms`,
  'scan alone': range(times.scan),
  'one capture (a turn with a workspace less one without, by its captures)': `${capture.toFixed(1)} ms`,
  'git add -A && git commit': range(times.git),
  'capture / git': (capture / median(times.git)).toFixed(2),
  'event loop stopped in a turn, with': blocks(blocked.with),
  'event loop stopped in a turn, without': blocks(blocked.without),
  'event loop stopped in a scan': blocks(blocked.scan),
  'growth per turn': `${perTurn.toFixed(0)} bytes, of which ${3 * fileBytes} changed; ${((perTurn - 16_384) / (3 * fileBytes)).toFixed(2)} x the changed bytes + 16 KB; git ${(gitGrown / turns).toFixed(0)} bytes`,
});

// First back turn by turn, then from anywhere to anywhere.
let equal = 0;
for (const { id, tree, git: commit } of shots.toReversed()) {
  times.restore.push(await timed(() => coder.restore(id)));
  times.gitRestore.push(await timed(() => git.restore(commit)));
  if (treeHash() === tree) equal++;
}
for (let at = 1; at <= turns; at++) {
  const { id = '', tree } = shots[(at * 83) % turns] ?? {};
  times.far.push(await timed(() => coder.restore(id)));
  if (treeHash() === tree) equal++;
}

report({
  'restore of the turn before': range(times.restore),
  'git read-tree -u of the turn before': range(times.gitRestore),
  'restore of any turn': range(times.far),
  'trees equal': `${equal} of ${2 * turns}`,
});

const last = shots.at(-1)?.id ?? '';
const elsewhere = join(base, 'elsewhere');
const checkout = await timed(() => coder.checkout(last, elsewhere));
const isWhole = treeHash(elsewhere) === shots.at(-1)?.tree;
rmSync(elsewhere, { recursive: true });

// A fork gets a folder of its own in its first turn.
const own = directory.perSession({ in: join(base, 'own'), from: root });
const builder = app.defineAgent({ name: 'builder', workspace: own, tools: [] });
const built = await builder.run('hello');
const beforeFork = await size();
const fork = await builder.fork(built.snapshotId ?? '');
await builder.run('hello', { sessionId: fork.sessionId });
const forked = (await size()) - beforeFork;
const beforePlain = await size();
const forkOfPlain = await plain.fork(other.snapshotId ?? '');
await plain.run('hello', { sessionId: forkOfPlain.sessionId });
const forkedPlain = (await size()) - beforePlain;
const problems = (await store.maintenance?.verify?.())?.length;

report({
  'checkout of all files': `${checkout.toFixed(0)} ms, ${isWhole ? 'equal' : 'DIFFERENT'}`,
  'a fork and its first turn, in another folder': `${forked} bytes, without files ${forkedPlain} bytes`,
  'problems that verify finds': String(problems),
});
await app.close();

const sandbox = await openAiSandbox(base, copied);
if (sandbox === undefined) report({ 'OpenAI Agents SDK': 'not installed' });
else report({ 'OpenAI Agents SDK': await archived(sandbox) });
await postgres?.stop();
process.exit();

/** A rival whose every turn is a whole archive. */
async function archived(rival: Rival): Promise<string> {
  const saves: number[] = [];
  const restores: number[] = [];
  const ids: string[] = [];
  for (turn = 1; turn <= archives; turn++) {
    await change(rival.root);
    saves.push(await timed(async () => void ids.push(await rival.save())));
  }
  for (const id of ids.toReversed()) restores.push(await timed(() => rival.restore(id)));
  return `saved in ${median(saves).toFixed(0)} ms, ${(rival.size() / archives).toFixed(0)} bytes per turn, restored in ${median(restores).toFixed(0)} ms`;
}

/** A turn captures at its start, after its tool calls, and at its end. */
function captures(): number {
  return 3;
}

async function openStore(): Promise<Store> {
  switch (values.store) {
    case 'memory':
      return memoryStore();
    case 'file':
      return fileStore(stored);
    case 'postgres': {
      const { postgresStore } = await import('../../src/store/postgres/index.ts');
      return postgresStore({ connectionString: url });
    }
    default:
      return sqliteStore(stored);
  }
}

async function timed(work: () => unknown): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;
}

function range(numbers: readonly number[]): string {
  return `median ${median(numbers).toFixed(1)} ms, highest ${Math.max(...numbers).toFixed(1)} ms`;
}

function blocks(all: readonly Blocked[]): string {
  const of = (key: keyof Blocked): string => range(all.map((each) => each[key]));
  return `processor time ${of('cpu')}; by the clock ${of('wall')}`;
}

function report(rows: Readonly<Record<string, string>>): void {
  for (const [name, value] of Object.entries(rows)) console.log(`${name}: ${value}`);
}

/** The bytes of the store on the disk, where it has some. */
async function size(): Promise<number> {
  if (values.store === 'postgres') return await databaseBytes(url);
  if (values.store === 'file') return bytesIn(stored);
  if (values.store !== 'sqlite') return 0;
  const db = new DatabaseSync(stored);
  db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
  db.close();
  return statSync(stored).size;
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
