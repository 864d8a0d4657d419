import { execFileSync } from 'node:child_process';
import { systems } from '../systems/all.ts';
import { repository, versionOf } from './setup.ts';

/** The versions of all that takes part. */
export function versions(postgres = 'not started'): Readonly<Record<string, string>> {
  const packages = Object.values(systems).flatMap((system) => system.packages);
  return {
    node: process.versions.node,
    sqlite: process.versions.sqlite ?? 'none',
    postgres,
    ...Object.fromEntries(packages.map((name) => [name, versionOf(name)])),
  };
}

/** The commit that is measured, as far as git knows. */
export function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
      cwd: repository,
      encoding: 'utf8',
    }).trim();
  } catch {
    return 'unknown';
  }
}
