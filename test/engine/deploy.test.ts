import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import { createClient } from '../../src/client/index.ts';
import { builtCommand, withBuiltPackage } from '../cli/support/built-package.ts';
import { freePort, startPostgres, type TestPostgres } from '../support/postgres.ts';

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

/** Starts a process the way a process manager does. */
async function start(name: string, env: Record<string, string> = {}): Promise<ChildProcess> {
  const found = withBuiltPackage();
  const { [name]: command = '' } = await procfile();
  const child = spawn('sh', ['-c', `exec env ${command}`], {
    cwd: project,
    env: {
      ...process.env,
      ...found.env,
      NODE_OPTIONS: found.options.join(' '),
      DATABASE_URL: postgres.connectionString,
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

test('the compose file and the systemd unit start the same worker, and let it drain', async () => {
  const { server, worker } = await procfile();
  const compose = parse(await readFile(join(deploy, 'docker-compose.yml'), 'utf8'), {
    merge: true,
  }) as { services: Record<string, Service> };
  expect(Object.keys(compose.services)).toEqual(['postgres', 'server', 'worker']);
  const { services } = compose;
  expect(services.worker?.command).toBe(worker);
  expect(`WAYMARK_RECOVER=0 ${services.server?.command}`).toBe(server);
  for (const name of ['server', 'worker']) {
    expect(services[name]?.environment).toHaveProperty('DATABASE_URL');
    expect(services[name]?.depends_on).toEqual({ postgres: { condition: 'service_healthy' } });
  }

  const unit = parseUnit(await readFile(join(deploy, 'waymark-worker@.service'), 'utf8'));
  expect(Object.keys(unit)).toEqual(['Unit', 'Service', 'Install']);
  expect(unit.Service?.ExecStart).toBe(`${unit.Service?.WorkingDirectory}/${worker}`);
  const drainSeconds = Number(/--drain (\d+)/.exec(worker ?? '')?.[1]) / 1000;
  expect(Number.parseInt(services.worker?.stop_grace_period ?? '', 10)).toBeGreaterThan(
    drainSeconds,
  );
  expect(Number(unit.Service?.TimeoutStopSec)).toBeGreaterThan(drainSeconds);
});

interface Service {
  readonly command?: string;
  readonly environment?: object;
  readonly depends_on?: object;
  readonly stop_grace_period?: string;
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
