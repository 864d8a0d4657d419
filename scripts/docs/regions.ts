import { readFileSync } from 'node:fs';

/** A piece of code out of a file: what stands between `// #region name` and its `// #endregion`, or the whole file. */
export function codeOf(path: string, region: string | undefined): string {
  const lines = readFileSync(path, 'utf8').split('\n');
  if (region === undefined) return withoutMarks(lines);
  const start = lines.findIndex((line) => line.trim() === `// #region ${region}`);
  if (start < 0) throw new Error(`${path} has no region "${region}"`);
  const end = lines.findIndex((line, at) => at > start && line.trim() === '// #endregion');
  if (end < 0) throw new Error(`${path}: region "${region}" has no end`);
  return withoutMarks(lines.slice(start + 1, end));
}

/** The names of all regions of a file. */
export function regionsOf(path: string): string[] {
  return [...readFileSync(path, 'utf8').matchAll(/^\s*\/\/ #region (\S+)$/gm)].map(
    ([, name = '']) => name,
  );
}

// What a linter is told is of no use to a reader.
function withoutMarks(lines: readonly string[]): string {
  const kept = lines.filter((line) => !/^\s*\/\/ (#(end)?region|biome-ignore)\b/.test(line));
  const indents = kept.filter((line) => line.trim() !== '').map((line) => line.search(/\S/));
  const margin = Math.min(...indents);
  return kept
    .map((line) => line.slice(margin))
    .join('\n')
    .trim();
}
