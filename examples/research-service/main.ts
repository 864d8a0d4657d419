import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { demoPostgres } from '../shared/demo-postgres.ts';
import { ask } from './ask.ts';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const cli = here('../../dist/cli.mjs');
const [port, archivePort] = [process.env.PORT ?? '3000', process.env.ARCHIVE_PORT ?? '3001'];
const url = `http://127.0.0.1:${port}`;

const database = await demoPostgres('research-service');
const env = {
  ...process.env,
  DATABASE_URL: database.connectionString,
  ARCHIVE_URL: `http://127.0.0.1:${archivePort}/a2a/archive`,
};
const start = (args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
  spawn(process.execPath, args, { stdio: 'inherit', env: { ...env, ...more } });

// #region processes
const processes: ChildProcess[] = [
  start([here('serve-archive.ts')], { PORT: archivePort }),
  start([cli, 'serve', here('agents.ts'), '--port', port, '--no-work']), // accepts runs
  start([cli, 'worker', here('agents.ts')]), // works on them
  start([cli, 'worker', here('agents.ts')]),
];
// #endregion

async function stop(): Promise<void> {
  await Promise.all(
    processes.map(async (each) => {
      if (each.exitCode !== null || each.signalCode !== null) return;
      each.kill('SIGTERM');
      await once(each, 'exit');
    }),
  );
  await database.stop();
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void stop().then(() => process.exit(0)));
}

await untilReady(`${url}/readyz`);
await untilReady(`http://127.0.0.1:${archivePort}/readyz`);
await ask(url, 'How do tides work?');
await ask(url, 'Everything about tides');
console.log(`The service listens on ${url}. Ctrl-C stops it.`);

async function untilReady(address: string): Promise<void> {
  for (let tries = 0; tries < 120; tries++) {
    const response = await fetch(address).catch(() => undefined);
    if (response?.ok) return;
    await new Promise((later) => setTimeout(later, 500));
  }
  throw new Error(`${address} does not answer.`);
}
