/** `npm run example coding-assistant -- chat`: the command line over this app; `dev`, which serves Studio, without a command. */
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const [command = 'dev', ...args] = process.argv.slice(2);
const cli = fileURLToPath(new URL('../../dist/cli.mjs', import.meta.url));
const file = fileURLToPath(new URL('agents.ts', import.meta.url));
const named = ['dev', 'acp'].includes(command) ? [file] : ['--file', file];
const started = spawn(process.execPath, [cli, command, ...named, ...args], { stdio: 'inherit' });
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => signal === 'SIGTERM' && started.kill(signal));
}
started.on('exit', (code) => process.exit(code ?? 0));
