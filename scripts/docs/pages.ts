import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Every page of the documentation, as paths from the root. */
export function pages(root: string): string[] {
  const top = [
    'README.md',
    'AGENTS.md',
    'CONTRIBUTING.md',
    'CHANGELOG.md',
    'CODE_OF_CONDUCT.md',
    'SECURITY.md',
    'VERSIONING.md',
    'bench/README.md',
    'bench/RESULTS.md',
    'bench/COMPARISON.md',
    'bench/ergonomics/README.md',
  ];
  const docs = readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name.replaceAll('\\', '/')}`);
  return [...top, ...docs.sort()].filter((name) => existsSync(join(root, name)));
}
