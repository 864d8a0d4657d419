/**
 * Examples show what users type: a fallback to an empty text there hides a mistake, or shows that a type of ours is too wide.
 * Exits with 1 if the documentation, an example or a template has one.
 */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const places = [
  'README.md',
  'docs/*.md',
  'docs/snippets/*.{ts,tsx}',
  'examples/**/*.{ts,tsx}',
  'templates/**/*.{ts,tsx,md}',
];
const exclude = ['**/node_modules/**', '**/dist/**'];

/** The lines of a text with `?? ''`, `|| ''` or `= ''`, counted from 1. */
function emptyFallbacks(text: string): number[] {
  return text
    .split('\n')
    .flatMap((line, at) => (/(\?\?|\|\||[^=!]=) (''|""|``)/.test(line) ? [at + 1] : []));
}

const files = globSync(places, { cwd: root, exclude }).sort();
const found = files.flatMap((file) =>
  emptyFallbacks(readFileSync(join(root, file), 'utf8')).map((line) => `${file}:${line}`),
);
for (const place of found) console.log(`${place}: an example falls back to an empty text.`);
if (found.length === 0)
  console.log(`None of ${files.length} examples falls back to an empty text.`);
else process.exitCode = 1;
