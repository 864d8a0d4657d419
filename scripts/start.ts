/**
 * `npm start`: builds what is missing or older than its sources, then serves the examples with the studio. What stands
 * behind `npm start --` goes to `waymark dev`.
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '..');
const bin = (name: string): string => join(root, 'node_modules/.bin', name);

/** When anything below a folder was last written. */
function newest(folder: string): number {
  const times = readdirSync(folder, { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && !/\.test(-d)?\.tsx?$/.test(entry.name))
    .map((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs);
  return Math.max(0, ...times);
}

function isOutdated(output: string, sources: readonly string[]): boolean {
  const path = join(root, output);
  if (!existsSync(path)) return true;
  const built = statSync(path).mtimeMs;
  return sources.some((folder) => newest(join(root, folder)) > built);
}

function build(what: string, command: string, args: readonly string[]): void {
  console.log(`Building ${what} …`);
  try {
    execFileSync(bin(command), args, { cwd: root, stdio: 'pipe', encoding: 'utf8' });
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    console.error(`${stdout}${stderr}`.trim());
    console.error(`✗ ${what} could not be built.`);
    process.exit(1);
  }
}

if (isOutdated('dist/cli.mjs', ['src'])) build('waymark', 'tsdown', ['--no-clean', '--silent']);
if (isOutdated('dist/studio/index.html', ['studio', 'src/client', 'src/react', 'src/protocol'])) {
  build('the studio', 'vite', ['build', 'studio', '--logLevel', 'error']);
}

const args = [join(root, 'dist/cli.mjs'), 'dev', join(root, 'examples/agents.ts')];
const dev = spawn(process.execPath, [...args, ...process.argv.slice(2)], { stdio: 'inherit' });
// Ctrl-C reaches both; this one waits for the other to end.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => signal === 'SIGTERM' && dev.kill(signal));
}
dev.on('exit', (code) => process.exit(code ?? 0));
