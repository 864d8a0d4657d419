/** `npm run example <name>`: builds the package if it is missing or outdated, then starts an example application. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { buildPackage } from './start/build.ts';

const root = resolve(import.meta.dirname, '..');
const [name, ...args] = process.argv.slice(2);
const file = join(root, 'examples', String(name), 'main.ts');
if (name === undefined || !existsSync(file)) {
  console.error('Name an application: support-desk, coding-assistant or research-service.');
  process.exit(2);
}

buildPackage();
const started = spawn(process.execPath, [file, ...args], { stdio: 'inherit' });
// Ctrl-C reaches both; this one waits for the other to end.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => signal === 'SIGTERM' && started.kill(signal));
}
started.on('exit', (code) => process.exit(code ?? 0));
