import { globSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { isSupportedNode, supportedNode } from './node-version.ts';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

test.each([
  ['20.19.0', false],
  ['22.19.1', false],
  ['22.20.0', true],
  ['22.30.0', true],
  ['23.11.0', false],
  ['24.6.0', false],
  ['24.7.0', true],
  ['25.0.0', true],
])('Node %s: %s', (version, isSupported) => {
  expect(isSupportedNode(version)).toBe(isSupported);
});

test('the manifests, the command line and the pages name the same versions', () => {
  const manifests = globSync(['package.json', 'templates/*/package.json'], { cwd: root });
  expect(manifests.length).toBeGreaterThan(2);
  for (const path of manifests) {
    expect(JSON.parse(read(path)).engines.node).toBe('^22.20.0 || >=24.7.0');
  }
  for (const page of ['README.md', 'docs/getting-started.md', 'docs/installation.md']) {
    expect(read(page).replaceAll('\n', ' ')).toContain(supportedNode);
  }
});
