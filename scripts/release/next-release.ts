/** The part of a version that a release raises. */
export type Level = 'major' | 'minor' | 'patch';

/** A version and its changelog. */
export interface Release {
  readonly version: string;
  readonly changelog: string;
}

/**
 * The next version, with what was under "Unreleased" in the changelog under its number and date. Throws when nothing is
 * unreleased, and when a patch would contain a breaking change (see VERSIONING.md).
 */
export function nextRelease({ version, changelog }: Release, level: Level, date: string): Release {
  const [, before, unreleased, rest] =
    /^([\s\S]*?^## Unreleased\n)([\s\S]*?)(^## \d[\s\S]*)?$(?![\s\S])/m.exec(changelog) ?? [];
  if (before === undefined || unreleased === undefined || unreleased.trim() === '') {
    throw new Error('CHANGELOG.md has nothing under "## Unreleased": there is nothing to release.');
  }
  if (level === 'patch' && unreleased.includes('**Changed:**')) {
    throw new Error(
      'The changelog has breaking changes ("**Changed:**"). Release a minor version.',
    );
  }
  const next = raised(version, level);
  return {
    version: next,
    changelog: `${before}\n## ${next} (${date})\n\n${unreleased.trim()}\n${rest === undefined ? '' : `\n${rest}`}`,
  };
}

/** Before 1.0, a minor version can contain breaking changes. */
function raised(version: string, level: Level): string {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  if (level === 'major') return `${major + 1}.0.0`;
  return level === 'minor' ? `${major}.${minor + 1}.0` : `${major}.${minor}.${patch + 1}`;
}
