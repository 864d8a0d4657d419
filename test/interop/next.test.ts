/** The built package inside a Next application: its development server, and with `LONG=1` what it builds for production. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { get, post, userInput } from '../server/kit.ts';
import { streamsPieceByPiece } from '../server/piece-by-piece.ts';

const root = resolve(import.meta.dirname, '../..');
const tsdown = join(root, 'node_modules/.bin/tsdown');
const next = join(import.meta.dirname, 'node_modules/.bin/next');
const env = { ...process.env, NEXT_TELEMETRY_DISABLED: '1' };
const modes = process.env.LONG === '1' ? ['development', 'production'] : ['development'];

/** Inside the repository, where Next finds itself; its name keeps the compiler and git away. */
let project: string;

beforeAll(async () => {
  project = await mkdtemp(join(import.meta.dirname, '.next-app-'));
  const installed = join(project, 'node_modules/waymark');
  const route = join(project, 'app/api/[...path]');
  await mkdir(installed, { recursive: true });
  await cp(join(root, 'package.json'), join(installed, 'package.json'));
  // A build of its own: others may be building into the usual place.
  const build = ['--out-dir', join(installed, 'dist'), '--logLevel', 'error'];
  await promisify(execFile)(tsdown, build, { cwd: root });
  await cp(join(import.meta.dirname, 'next-app'), route, { recursive: true });
  await writeFile(join(project, 'package.json'), '{ "private": true, "type": "module" }');
  // Next's own check of types knows no TypeScript as new as ours.
  const config = { typescript: { ignoreBuildErrors: true }, turbopack: { root } };
  const file = join(project, 'next.config.mjs');
  await writeFile(file, `export default ${JSON.stringify(config)};`);
});

afterAll(() => rm(project, { recursive: true, force: true }));

describe('the handler inside Next', () => {
  test.each(modes)('streams in %s', { timeout: 300_000 }, async (mode) => {
    const options = { cwd: project, env: { ...env, NODE_ENV: mode } as NodeJS.ProcessEnv };
    const isBuilt = mode === 'production';
    if (isBuilt) await promisify(execFile)(next, ['build'], options);
    const command = [isBuilt ? 'start' : 'dev', '--port', '0', '--hostname', '127.0.0.1'];
    const child = spawn(next, command, {
      ...options,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const url = `${await addressOf(child)}/api`;
      expect(await get(`${url}/agents`)).toMatchObject({ items: [{ name: 'chat' }] });
      await streamsPieceByPiece(url);
      const answer = await post(`${url}/agents/chat/turns`, { input: userInput('hello') });
      expect(await answer.json()).toMatchObject({ message: { content: [{ text: 'Hello.' }] } });
      expect((await get(`${url}/nothing`)).status).toBe('NOT_FOUND');
      // Who is at the other end is not known here.
      expect((await get(`${url}/api/actions`)).status).toBe('PERMISSION_DENIED');
    } finally {
      child.kill();
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    }
  });
});

function addressOf(child: ChildProcess): Promise<string> {
  let printed = '';
  return new Promise((found, failed) => {
    child.stdout?.on('data', (piece) => {
      printed += piece;
      const [url] = /http:\/\/127\.0\.0\.1:\d+/.exec(printed) ?? [];
      if (url !== undefined) found(url);
    });
    child.once('exit', (code) => failed(new Error(`Next ended with ${code}: ${printed}`)));
  });
}
