import ignore from 'ignore';

/** The rules of the `.gitignore` files from the root down to a folder. Equal objects have equal rules. */
export interface IgnoreRules {
  /** Whether a path relative to the root is excluded. */
  excludes(path: string, isFolder: boolean): boolean;
  /** Where they are from: the rules of the folders above, and the text. */
  readonly source?: { readonly outer: IgnoreRules; readonly text: string };
  /** The numbers of lines that are not applied. */
  readonly unusable: readonly number[];
}

/** Longer files of patterns are not read to the end. */
export const maxRulesBytes = 256 * 1024;

/** The rules above the root: none. */
export const noRules: IgnoreRules = { excludes: () => false, unusable: [] };

/** The rules of a folder with a `.gitignore`, which come before those of the folders above it. `last`: those of the last scan. */
export function addRules(
  outer: IgnoreRules,
  {
    prefix,
    text,
    last,
  }: {
    readonly prefix: string;
    readonly text: string;
    readonly last: IgnoreRules | undefined;
  },
): IgnoreRules {
  if (last?.source?.outer === outer && last.source.text === text) return last;
  const lines = text.replace(/^\ufeff/, '').split(/\r?\n/);
  const own = ignore({ ignorecase: false }).add(lines.filter(isBounded));
  return {
    source: { outer, text },
    unusable: lines.flatMap((line, at) => (isBounded(line) ? [] : [at + 1])),
    excludes(path, isFolder) {
      const { ignored, unignored } = own.test(path.slice(prefix.length) + (isFolder ? '/' : ''));
      return ignored || (!unignored && outer.excludes(path, isFolder));
    },
  };
}

/**
 * Whether a pattern can be evaluated quickly: it becomes a regular expression, which takes a time that grows with a power of the
 * number of wildcards.
 */
function isBounded(pattern: string): boolean {
  if (pattern.startsWith('#')) return true;
  return (
    pattern.length <= 1_000 &&
    (pattern.match(/\*\*/g) ?? []).length <= 4 &&
    pattern.split('/').every((part) => (part.match(/\*+/g) ?? []).length <= 3)
  );
}
