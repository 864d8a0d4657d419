/** Each template of `waymark init` as a user gets it: created, installed from a packed tarball, checked, tested, started. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { client } from '../../src/client/index.ts';
import { startPostgres } from '../support/postgres.ts';

const root = resolve(import.meta.dirname, '../..');
const bin = (name: string): string => join(root, 'node_modules/.bin', name);
const started: ChildProcess[] = [];
/** The package as it is packed, and the projects. */
let folder: string;
let tarball: string;

// Installing takes as long as the network and the disk do.
const timeout = 900_000;
// The repository's own binaries must not stand in for those of a project; its Node may.
const path = [dirname(process.execPath), ...(process.env.PATH ?? '').split(delimiter)]
  .filter((each) => !each.includes('node_modules/.bin') || each === dirname(process.execPath))
  .join(delimiter);
const env: NodeJS.ProcessEnv = { ...process.env, PATH: path, NO_COLOR: '1', NODE_OPTIONS: '' };

async function run(command: string, args: readonly string[], cwd: string): Promise<string> {
  const options = { cwd, env, maxBuffer: 50_000_000 };
  const { stdout } = await promisify(execFile)(command, args, options);
  return stdout;
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-templates-'));
  const staged = join(folder, 'package');
  for (const file of ['package.json', 'README.md', 'LICENSE', 'THIRD-PARTY-NOTICES.md']) {
    await cp(join(root, file), join(staged, file));
  }
  await cp(join(root, 'templates'), join(staged, 'templates'), { recursive: true });
  // Built into a folder of its own: others may be building into the usual place.
  await run(bin('tsdown'), ['--out-dir', join(staged, 'dist'), '--logLevel', 'error'], root);
  const types = ['-p', 'tsconfig.build.json', '--outDir', join(staged, 'dist/types')];
  await run(bin('tsc'), types, root);
  const packed = await run('npm', ['pack', '--json', '--ignore-scripts'], staged);
  tarball = join(staged, JSON.parse(packed)[0].filename);
  // What `npx` would install besides.
  await symlink(join(root, 'node_modules'), join(staged, 'node_modules'));
}, timeout);

afterEach(async () => {
  for (const child of started.splice(0)) await stop(child);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Creates, installs, type-checks and tests a project; resolves to its folder. */
async function create(template: string): Promise<string> {
  const cli = join(folder, 'package/dist/cli.mjs');
  await run(process.execPath, [cli, 'init', template, '--template', template], folder);
  const project = join(folder, template);
  const packages = [tarball, ...(await pinned(project))];
  await run('npm', ['install', '--no-audit', '--no-fund', ...packages], project);
  await run('npm', ['run', 'check'], project);
  expect(await run('npm', ['test'], project)).toMatch(/pass 1\n/);
  return project;
}

/** The versions that this repository is tested with, where the project accepts them: a release elsewhere breaks no test. */
async function pinned(project: string): Promise<string[]> {
  const read = async (folder: string): Promise<Record<string, string>> => {
    const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'));
    return { ...manifest.dependencies, ...manifest.devDependencies };
  };
  const known = { ...(await read(root)), ...(await read(import.meta.dirname)) };
  const major = (version: string): string => /\d+/.exec(version)?.[0] ?? '';
  return Object.entries(await read(project)).flatMap(([name, range]) => {
    const version = known[name];
    return version !== undefined && major(version) === major(range) ? [`${name}@${version}`] : [];
  });
}

/** Starts a script of the project, without npm in between, which would keep signals to itself. */
async function start(
  project: string,
  script: string,
  args: readonly string[] = [],
  more: NodeJS.ProcessEnv = {},
): Promise<ChildProcess> {
  const { scripts } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'));
  const [name = '', ...own] = String(scripts[script]).split(' ');
  const command = name === 'node' ? process.execPath : join(project, 'node_modules/.bin', name);
  const child = spawn(command, [...own, ...args], {
    cwd: project,
    env: { ...env, ...more },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.push(child);
  return child;
}

/** The first match in what a process prints; rejects when it ends without. */
function printed(child: ChildProcess, pattern: RegExp): Promise<string> {
  let text = '';
  return new Promise((found, failed) => {
    const hear = (piece: Buffer): void => {
      text += piece;
      const [match] = pattern.exec(text) ?? [];
      if (match !== undefined) found(match);
    };
    child.stdout?.on('data', hear);
    child.stderr?.on('data', hear);
    child.once('exit', (code) => failed(new Error(`It ended with ${code}: ${text}`)));
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill('SIGTERM');
  await ended;
}

const address = /http:\/\/127\.0\.0\.1:\d+/;

/** One turn that looks up an order, over HTTP. */
async function ask(url: string): Promise<unknown> {
  const response = await fetch(`${url}/agents/desk/turns`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      input: { message: { role: 'user', content: [{ text: 'Where is order 7?' }] } },
    }),
  });
  return await response.json();
}

async function expectPage(url: string): Promise<void> {
  const page = await fetch(url);
  expect(page.status).toBe(200);
  expect(await page.text()).toContain('Where is order 7?');
}

const answered = { finishReason: 'stop', message: { role: 'model' } };

describe('the templates of waymark init', { timeout }, () => {
  test('default', async () => {
    const project = await create('default');
    const dev = await start(project, 'start', ['--port', '0', '--no-reload']);
    const url = await printed(dev, address);
    expect(await ask(url)).toMatchObject(answered);
  });

  test('hono', async () => {
    const project = await create('hono');
    const url = await printed(await start(project, 'start', [], { PORT: '0' }), address);
    expect(await ask(`${url}/api`)).toMatchObject(answered);
    const closed = await start(project, 'start', [], { PORT: '0', API_TOKEN: 'secret' });
    const other = await printed(closed, address);
    expect(await ask(`${other}/api`)).toMatchObject({ status: 'UNAUTHENTICATED' });
  });

  test('worker', async () => {
    const project = await create('worker');
    const postgres = await startPostgres();
    try {
      const more = { DATABASE_URL: postgres.connectionString, PORT: '0' };
      const server = await start(project, 'start', [], more);
      expect(await ask(await printed(server, address))).toMatchObject(answered);
      const worker = await start(project, 'worker', [], more);
      await printed(worker, /Working on runs of agents\.ts \(pg-boss\)/);
      const background = await start(project, 'background', [], more);
      await printed(background, /Done: .*Desk lamp/);
      for (const child of [background, worker, server]) await stop(child);
    } finally {
      await postgres.stop();
    }
  });

  test('cloudflare', async () => {
    const project = await create('cloudflare');
    const local = ['--port', '0', '--ip', '127.0.0.1'];
    const more = { CI: '1', WRANGLER_SEND_METRICS: 'false' };
    const begin = async () => {
      const dev = await start(project, 'start', local, more);
      const url = (await printed(dev, /Ready on http:\/\/127\.0\.0\.1:\d+/)).slice(
        'Ready on '.length,
      );
      const headers = { authorization: 'Bearer local' };
      return { dev, url, desk: client({ url, agent: 'desk', headers }) };
    };
    const { dev, url, desk } = await begin();
    expect(await ask(url)).toMatchObject({ status: 'UNAUTHENTICATED' });
    const first = await desk.run('Where is order 7?');
    expect(first.text).toContain('Desk lamp');
    const asked = await desk.run('Refund order 7', { sessionId: first.sessionId });
    expect(asked.interrupts).toHaveLength(1);
    await stop(dev);

    const again = await begin();
    const done = await again.desk.resume(asked, (request) => request.approve());
    expect(done.text).toContain('"refunded":40');
    const run = await again.desk.start('Where is order 8?');
    expect((await run.wait()).text).toContain('Desk lamp');
  });

  test('next', async () => {
    const project = await create('next');
    const local = ['--port', '0', '--hostname', '127.0.0.1'];
    const more = { NEXT_TELEMETRY_DISABLED: '1' };
    const dev = await start(project, 'dev', local, more);
    const url = await printed(dev, address);
    await expectPage(url);
    expect(await ask(`${url}/api`)).toMatchObject(answered);
    await stop(dev);
    if (process.env.LONG !== '1') return;
    await run('npm', ['run', 'build'], project);
    const built = await printed(await start(project, 'start', local, more), address);
    await expectPage(built);
    expect(await ask(`${built}/api`)).toMatchObject(answered);
  });
});
