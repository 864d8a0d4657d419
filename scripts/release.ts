/**
 * Prepares a release: raises the version in package.json and package-lock.json, and gives the unreleased changes their number.
 * `npm run release -- minor`, then commit, tag and push as it says. The workflow "Release" publishes the tag.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Level, nextRelease } from './release/next-release.ts';

const root = resolve(import.meta.dirname, '..');
const read = (name: string): string => readFileSync(join(root, name), 'utf8');
const level = process.argv[2] as Level;
if (!['major', 'minor', 'patch'].includes(level)) {
  console.error('Say what to raise: npm run release -- major | minor | patch');
  process.exit(2);
}
const { version } = JSON.parse(read('package.json')) as { readonly version: string };
const today = new Date().toISOString().slice(0, 10);
const next = nextRelease({ version, changelog: read('CHANGELOG.md') }, level, today);
writeFileSync(join(root, 'CHANGELOG.md'), next.changelog);
for (const name of ['package.json', 'package-lock.json']) {
  const raised = read(name).replace(`"version": "${version}"`, `"version": "${next.version}"`);
  // The lock file has the version twice: of itself, and of its root package.
  const twice = raised.replace(
    `"name": "waymark",\n      "version": "${version}"`,
    `"name": "waymark",\n      "version": "${next.version}"`,
  );
  writeFileSync(join(root, name), twice);
}
console.log(`Version ${next.version} is prepared. Read the changelog, then:

  git commit -am "Release ${next.version}"
  git tag v${next.version}
  git push origin main v${next.version}`);
