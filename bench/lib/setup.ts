import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';

/** This folder, and the repository's. */
export const benchRoot: string = join(import.meta.dirname, '..');
export const repository: string = join(benchRoot, '..');

/** Installs the systems to compare with, and puts the built package next to them. */
export function setUp(): void {
  install();
  placePackage();
}

/** The version of a package that the benchmarks use. */
export function versionOf(name: string): string {
  for (const root of [benchRoot, repository]) {
    const manifest = join(root, 'node_modules', name, 'package.json');
    if (!existsSync(manifest)) continue;
    return (JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }).version;
  }
  return 'not installed';
}

function install(): void {
  const installed = join(benchRoot, 'node_modules/.package-lock.json');
  const wanted = join(benchRoot, 'package-lock.json');
  if (existsSync(installed) && isSame(installed, wanted)) return;
  // An npm that runs on an older Node installs older majors.
  const path = `${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}`;
  execFileSync('npm', ['ci'], {
    cwd: benchRoot,
    stdio: ['ignore', 'inherit', 'inherit'],
    env: { ...process.env, PATH: path },
    timeout: 300_000,
  });
}

// Compared by what they name: a checkout gives an unchanged file a new time.
function isSame(installed: string, wanted: string): boolean {
  const there = packagesIn(installed);
  return Object.entries(packagesIn(wanted)).every(
    ([name, { version, optional = false }]) =>
      name === '' || optional || there[name]?.version === version,
  );
}

function packagesIn(
  lock: string,
): Readonly<Record<string, { readonly version?: string; readonly optional?: boolean }>> {
  return JSON.parse(readFileSync(lock, 'utf8')).packages;
}

// A copy of what would be packed, so that nothing changes while it is measured.
function placePackage(): void {
  const built = join(repository, 'dist');
  if (!existsSync(join(built, 'index.mjs'))) {
    throw new Error('There is no built package to measure. Run `npm run build` first.');
  }
  const place = join(benchRoot, 'node_modules/waymark');
  rmSync(place, { recursive: true, force: true });
  mkdirSync(place, { recursive: true });
  cpSync(built, join(place, 'dist'), { recursive: true });
  cpSync(join(repository, 'package.json'), join(place, 'package.json'));
}
