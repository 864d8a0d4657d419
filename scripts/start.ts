/**
 * `npm start`: builds what is missing or older than its sources, then serves the examples with the studio. What stands
 * behind `npm start --` goes to `waymark dev`.
 */
import { spawn } from 'node:child_process';
import { join, resolve } from 'node:path';
import { buildPackage, buildStudio } from './start/build.ts';

const root = resolve(import.meta.dirname, '..');

buildPackage();
buildStudio();

const args = [join(root, 'dist/cli.mjs'), 'dev', join(root, 'examples/agents.ts')];
const dev = spawn(process.execPath, [...args, ...process.argv.slice(2)], { stdio: 'inherit' });
// Ctrl-C reaches both; this one waits for the other to end.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => signal === 'SIGTERM' && dev.kill(signal));
}
dev.on('exit', (code) => process.exit(code ?? 0));
