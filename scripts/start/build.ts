import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';

const root = resolve(import.meta.dirname, '../..');
const bin = (name: string): string => join(root, 'node_modules/.bin', name);

/** Builds the package if it is missing or older than its sources. */
export function buildPackage(): void {
  if (!isOutdated('dist/cli.mjs', ['src'])) return;
  build('waymark', 'tsdown', ['--no-clean', '--silent']);
}

/** Builds Studio if it is missing or older than its sources. */
export function buildStudio(): void {
  const sources = ['studio', 'src/client', 'src/react', 'src/protocol'];
  if (!isOutdated('dist/studio/index.html', sources)) return;
  build('the studio', 'vite', ['build', 'studio', '--logLevel', 'error']);
}

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
