import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { badges, withAddress } from '../../scripts/docs/address.ts';
import { nextRelease } from '../../scripts/release/next-release.ts';

const old = '## 0.1.0\n\nThe first version.\n';
const changelog = `# Changelog\n\n## Unreleased\n\n- A fix.\n\n${old}`;

test('a release gives the unreleased changes its number, and leaves the section empty', () => {
  const first = nextRelease({ version: '0.1.0', changelog }, 'minor', '2026-11-16');
  expect(first).toEqual({
    version: '0.2.0',
    changelog: `# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-11-16)\n\n- A fix.\n\n${old}`,
  });
  expect(() => nextRelease(first, 'patch', '2026-11-17')).toThrow('nothing under "## Unreleased"');
});

test('the version is raised as asked', () => {
  const raise = (version: string, level: 'major' | 'minor' | 'patch') =>
    nextRelease({ version, changelog }, level, '2026-11-16').version;
  expect(raise('0.1.3', 'patch')).toBe('0.1.4');
  expect(raise('0.1.3', 'minor')).toBe('0.2.0');
  expect(raise('0.9.3', 'major')).toBe('1.0.0');
});

test('a patch with a breaking change is refused', () => {
  const breaking = changelog.replace('A fix.', '**Changed:** a name.');
  expect(() =>
    nextRelease({ version: '0.1.0', changelog: breaking }, 'patch', '2026-11-16'),
  ).toThrow('Release a minor version');
});

test('a first release needs no earlier one in the changelog', () => {
  const { changelog: written } = nextRelease(
    { version: '0.0.0', changelog: '# Changelog\n\n## Unreleased\n\n- All.\n' },
    'minor',
    '2026-11-16',
  );
  expect(written).toBe('# Changelog\n\n## Unreleased\n\n## 0.1.0 (2026-11-16)\n\n- All.\n');
});

test('the address of the repository is set in one place, and nothing shows it before', () => {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  expect(withAddress('{\n  "name": "waymark"\n}\n')).toBe('{\n  "name": "waymark"\n}\n');
  expect(badges(undefined)).toBe('');
  const repository = { type: 'git', url: 'git+https://github.com/example/waymark.git' };
  const filled = withAddress(JSON.stringify({ ...JSON.parse(manifest), repository }));
  expect(JSON.parse(filled)).toMatchObject({
    repository,
    homepage: 'https://github.com/example/waymark#readme',
    bugs: 'https://github.com/example/waymark/issues',
  });
  expect(withAddress(filled)).toBe(filled);
  expect(badges('https://github.com/example/waymark')).toContain('/actions/workflows/ci.yml');
});
