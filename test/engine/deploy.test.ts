import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  chown,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../src/client/index.ts';
import { builtCommand, withBuiltPackage } from '../cli/support/built-package.ts';
import { eventually } from '../support/eventually.ts';
import { pgbouncer } from '../support/pgbouncer.ts';
import { freePort, startPostgres, type TestPostgres } from '../support/postgres.ts';
import { serverUser } from '../support/system-postgres.ts';
import { type Compose, parseCompose, startOrder } from './support/compose.ts';
import { execForm, lastOf, parseDockerfile } from './support/dockerfile.ts';

const root = resolve(import.meta.dirname, '../..');
const deploy = join(root, 'deploy');
const started: ChildProcess[] = [];
let postgres: TestPostgres;
let project: string;

beforeAll(async () => {
  postgres = await startPostgres();
  project = await createProject();
});
afterAll(async () => {
  for (const child of started) if (child.exitCode === null) child.kill('SIGKILL');
  await postgres.stop();
  await rm(project, { recursive: true, force: true });
});

/** A project with the files of `deploy/`, as if the package were installed in it. */
async function createProject(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-deploy-'));
  await cp(deploy, folder, { recursive: true });
  await writeFile(join(folder, 'package.json'), '{ "type": "module" }');
  const bin = join(folder, 'node_modules/.bin');
  await mkdir(bin, { recursive: true });
  for (const name of ['pg', 'pg-boss', 'hono', '@hono', 'ws', 'valibot']) {
    await symlink(join(root, 'node_modules', name), join(folder, 'node_modules', name));
  }
  const command = join(bin, 'waymark');
  await writeFile(command, `#!/bin/sh\nexec node ${builtCommand()} "$@"\n`);
  await chmod(command, 0o755);
  return folder;
}

/** The processes of the Procfile: their commands by name. */
async function procfile(): Promise<Record<string, string>> {
  const lines = (await readFile(join(deploy, 'Procfile'), 'utf8')).trim().split('\n');
  return Object.fromEntries(lines.map((line) => line.split(/:\s+(.*)/s).slice(0, 2)));
}

/** Starts a process of the Procfile the way a process manager does. */
async function start(name: string, env: Record<string, string> = {}): Promise<ChildProcess> {
  const { [name]: command = '' } = await procfile();
  return spawnIn(command, { DATABASE_URL: postgres.connectionString, ...env });
}

/** Starts a command in the project. */
function spawnIn(command: string, env: Readonly<Record<string, string>>): ChildProcess {
  const found = withBuiltPackage();
  const child = spawn('sh', ['-c', `exec env ${command}`], {
    cwd: project,
    env: {
      ...process.env,
      ...found.env,
      NODE_OPTIONS: found.options.join(' '),
      ...env,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  started.push(child);
  return child;
}

/** Gives what a process says on its standard error, as it is at the time. */
function hear(child: ChildProcess): () => string {
  let said = '';
  child.stderr?.on('data', (data: Buffer) => {
    said += data.toString();
  });
  return () => said;
}

test('the processes of the Procfile accept a run, work on it, and end when they are told to', async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const token = 'a token';
  const web = { PORT: String(port), HOST: '127.0.0.1', API_TOKEN: token };
  const server = await start('server', web);
  const healthy = () => fetch(`${url}/healthz`).then((response) => response.json());
  await expect
    .poll(() => healthy().catch(() => undefined))
    .toMatchObject({ status: 'ok', engine: { engine: 'pg-boss', waiting: 0 } });

  const anybody = createClient({ url }).agent('counter');
  const counter = createClient({ url, headers: { authorization: `Bearer ${token}` } }).agent(
    'counter',
  );
  const message = { role: 'user' as const, content: [{ text: 'one two three' }] };
  await expect(anybody.run({ message, detach: true })).rejects.toMatchObject({
    status: 'UNAUTHENTICATED',
  });
  const { snapshotId = '' } = await counter.run({ message, detach: true });
  // The status of the engine is passed on for a moment.
  await expect.poll(healthy).toMatchObject({ engine: { waiting: 1 } });

  const worker = await start('worker');
  const said = hear(worker);
  await expect.poll(said).toContain('Working on runs');
  const { state } = await counter.wait(snapshotId);
  expect(state?.messages?.at(-1)?.content).toEqual([{ text: '3 words' }]);
  for (const child of [worker, server]) {
    child.kill('SIGTERM');
    const [code] = await once(child, 'exit');
    expect(code).toBe(0);
  }
  expect(said()).toContain('Draining');
});

/** The variables that a user sets. */
const variables = { POSTGRES_PASSWORD: 'a-password', API_TOKEN: 'a-token' };

async function readCompose(): Promise<Compose> {
  return parseCompose(await readFile(join(deploy, 'docker-compose.yml'), 'utf8'), variables);
}

test.skipIf(pgbouncer === undefined)(
  'the services of the compose file start in their order, and work (skipped without PgBouncer)',
  async () => {
    const compose = await readCompose();
    const { services } = compose;
    expect(startOrder(compose)).toEqual(['postgres', 'pgbouncer', 'migrate', 'server', 'worker']);
    const { POSTGRES_USER = '', POSTGRES_PASSWORD = '' } = services.postgres?.environment ?? {};
    await query(`CREATE ROLE ${POSTGRES_USER} LOGIN SUPERUSER PASSWORD '${POSTGRES_PASSWORD}'`);
    await query(`CREATE DATABASE ${services.postgres?.environment?.POSTGRES_DB}`);

    // The hosts and ports inside of the containers, as they are here.
    const [pool, web] = await Promise.all([freePort(), freePort()]);
    const server = new URL(postgres.connectionString).port;
    const here = (text: string): string =>
      text
        .replaceAll('@postgres:5432', `@127.0.0.1:${server}`)
        .replaceAll('@pgbouncer:6432', `@127.0.0.1:${pool}`);
    const run = (name: string, command = services[name]?.command ?? ''): ChildProcess => {
      const { environment = {} } = services[name] ?? {};
      const env = Object.entries(environment).map(([key, value]) => [key, here(value)]);
      const local = { PORT: String(web), HOST: '127.0.0.1' };
      return spawnIn(here(command), { ...Object.fromEntries(env), ...local });
    };

    const pooler = await startPooler(compose, [
      ['host=postgres port=5432', `host=127.0.0.1 port=${server}`],
      ['listen_addr = *', 'listen_addr = 127.0.0.1'],
      ['listen_port = 6432', `listen_port = ${pool}`],
    ]);
    expect(await codeOf(run('migrate'))).toBe(0);

    const stages = parseDockerfile(await readFile(join(deploy, 'Dockerfile'), 'utf8'));
    const healthcheck = execForm(lastOf(stages.at(-1) ?? [], 'HEALTHCHECK') ?? '').join(' ');
    // Before there is a server.
    expect(await codeOf(run('server', healthcheck))).toBe(1);
    const web1 = run('server');
    await eventually(async () => (await codeOf(run('server', healthcheck))) === 0, 'the server');
    const worker = run('worker');
    const said = hear(worker);
    await expect.poll(said).toContain('Working on runs');
    const counter = createClient({
      url: `http://127.0.0.1:${web}`,
      headers: { authorization: `Bearer ${variables.API_TOKEN}` },
    }).agent('counter');
    const message = { role: 'user' as const, content: [{ text: 'one two three' }] };
    const { snapshotId = '' } = await counter.run({ message, detach: true });
    const { state } = await counter.wait(snapshotId);
    expect(state?.messages?.at(-1)?.content).toEqual([{ text: '3 words' }]);
    for (const child of [worker, web1]) {
      child.kill('SIGTERM');
      expect(await codeOf(child)).toBe(0);
    }
    pooler.kill('SIGTERM');
    await once(pooler, 'exit');
  },
);

test('the Dockerfile has two stages, and a server that is not root and gets signals', async () => {
  const stages = parseDockerfile(await readFile(join(deploy, 'Dockerfile'), 'utf8'));
  expect(stages).toHaveLength(2);
  const names = stages.map((stage) => / AS (\w+)$/.exec(lastOf(stage, 'FROM') ?? '')?.[1]);
  for (const stage of stages) expect(lastOf(stage, 'FROM')).toMatch(/^node:\d+-slim/);
  const image = stages.at(-1) ?? [];
  for (const { text } of image.filter(({ name }) => name === 'COPY')) {
    const from = /--from=(\w+)/.exec(text)?.[1];
    if (from !== undefined) expect(names).toContain(from);
  }
  expect(lastOf(image, 'USER')).toBe('node');
  // Nothing is written after the user is set, so that it cannot change what it runs.
  const user = image.findIndex(({ name }) => name === 'USER');
  expect(image.slice(user).map(({ name }) => name)).not.toContain('COPY');
  const files = await readdir(deploy);
  for (const name of ['CMD', 'HEALTHCHECK']) {
    const [program, file = ''] = execForm(lastOf(image, name) ?? '');
    expect(program).toBe('node');
    expect(files).toContain(file);
  }
  const { services } = await readCompose();
  expect(services.server?.command).toBe(execForm(lastOf(image, 'CMD') ?? '').join(' '));
});

test('the compose file and the systemd unit start the same worker, and let it drain', async () => {
  const { server, worker } = await procfile();
  const { services } = await readCompose();
  expect(services.worker?.command).toBe(worker);
  expect(`WAYMARK_RECOVER=0 ${services.server?.command}`).toBe(server);
  // Only the server has the port that the check of the image asks.
  expect(services.worker?.healthcheck?.disable).toBe(true);
  expect(services.migrate?.healthcheck?.disable).toBe(true);

  const unit = parseUnit(await readFile(join(deploy, 'waymark-worker@.service'), 'utf8'));
  expect(Object.keys(unit)).toEqual(['Unit', 'Service', 'Install']);
  expect(unit.Service?.ExecStart).toBe(`${unit.Service?.WorkingDirectory}/${worker}`);
  const drainSeconds = Number(/--drain (\d+)/.exec(worker ?? '')?.[1]) / 1000;
  const patience = (name: string): number =>
    Number.parseInt(services[name]?.stop_grace_period ?? '', 10);
  expect(patience('worker')).toBeGreaterThan(drainSeconds);
  expect(Number(unit.Service?.TimeoutStopSec)).toBeGreaterThan(drainSeconds);
  const source = await readFile(join(deploy, 'server.ts'), 'utf8');
  const graces = [...source.matchAll(/grace: ([\d_]+)/g)].map(([, ms = '']) =>
    Number(ms.replaceAll('_', '')),
  );
  expect(graces).toHaveLength(2);
  expect(patience('server')).toBeGreaterThan((graces[0] ?? 0) / 1000 + (graces[1] ?? 0) / 1000);
});

/** Runs a statement as the administrator of the server. */
async function query(sql: string): Promise<void> {
  const admin = new pg.Client({ connectionString: postgres.connectionString });
  await admin.connect();
  await admin.query(sql);
  await admin.end();
}

/** Starts PgBouncer with the files of the compose file, except for these settings of this machine. */
async function startPooler(
  { services, configs }: Compose,
  settings: readonly (readonly [string, string])[],
): Promise<ChildProcess> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-pgbouncer-'));
  const user = serverUser();
  if (user.uid !== undefined) await chown(folder, user.uid, user.gid ?? 0);
  const at = (target: string): string => join(folder, basename(target));
  const targets = (services.pgbouncer?.configs ?? []).map(({ target }) => target);
  for (const { source, target } of services.pgbouncer?.configs ?? []) {
    let content = configs[source]?.content ?? '';
    for (const [from, to] of settings) content = content.replace(from, to);
    for (const each of targets) content = content.replaceAll(each, at(each));
    await writeFile(at(target), content, { mode: 0o444 });
  }
  const [, ini = ''] = services.pgbouncer?.command?.split(' ') ?? [];
  const child = spawn(pgbouncer ?? '', [at(ini)], { ...user, cwd: folder, stdio: 'ignore' });
  started.push(child);
  child.once('exit', () => void rm(folder, { recursive: true, force: true }));
  return child;
}

async function codeOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode === null) await once(child, 'exit');
  return child.exitCode;
}

/** A unit file by section and key; a line that is neither is a mistake. */
function parseUnit(text: string): Record<string, Record<string, string>> {
  const sections: Record<string, Record<string, string>> = {};
  let current: Record<string, string> | undefined;
  for (const line of text.split('\n')) {
    if (line.trim() === '' || /^[#;]/.test(line)) continue;
    const [, name] = /^\[(\w+)\]$/.exec(line) ?? [];
    const [, key, value] = /^(\w+)=(.*)$/.exec(line) ?? [];
    if (name !== undefined) {
      current = {};
      sections[name] = current;
    } else if (key !== undefined && value !== undefined && current !== undefined) {
      current[key] = value;
    } else throw new Error(`Not a line of a unit: ${line}`);
  }
  return sections;
}
