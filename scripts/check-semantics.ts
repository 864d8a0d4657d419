import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What the rules and the tests that cite them say of each other. */
export interface Citations {
  /** Rules that no test cites. */
  readonly uncited: readonly string[];
  /** Numbers that tests cite and that are no rules, with the files. */
  readonly unknown: readonly string[];
  /** Numbers that stand for two rules. */
  readonly doubled: readonly string[];
  readonly rules: number;
}

const root = join(import.meta.dirname, '..');
const places = ['test', 'src/testing/agent-contract', 'src/testing/store-contract'];

/** Compares docs/semantics.md with the tests: every rule is cited, and everything that is cited is a rule. */
export function checkSemantics(): Citations {
  const text = readFileSync(join(root, 'docs/semantics.md'), 'utf8');
  const numbers = [...text.matchAll(/^- \*\*(S\d+)\*\* /gm)].map(([, number = '']) => number);
  const rules = new Set(numbers);
  const cited = new Map<string, string>();
  for (const file of places.flatMap((place) => filesIn(place))) {
    for (const number of citationsIn(readFileSync(join(root, file), 'utf8'))) {
      cited.set(number, file);
    }
  }
  return {
    uncited: [...rules].filter((rule) => !cited.has(rule)),
    unknown: [...cited].filter(([number]) => !rules.has(number)).map((pair) => pair.join(' in ')),
    doubled: numbers.filter((number, place) => numbers.indexOf(number) !== place),
    rules: rules.size,
  };
}

// Only in the name of a test and in the rules of a case; a comment proves nothing.
function citationsIn(source: string): string[] {
  const names = source.matchAll(/\b(?:test|it)(?:\.\w+(?:\([^)]*\))?)?\(\s*(['"`])(.*?)\1/gs);
  const rules = source.matchAll(/\brules: \[([^\]]*)\]/g);
  const texts = [...[...names].map(([, , name]) => name), ...[...rules].map(([, list]) => list)];
  return texts.flatMap((each) => each?.match(/\bS\d+\b/g) ?? []);
}

function filesIn(place: string): string[] {
  return globSync('**/*.ts', { cwd: join(root, place), exclude: ['**/node_modules'] }).map((file) =>
    join(place, file),
  );
}

if (import.meta.main) {
  const { uncited, unknown, doubled, rules } = checkSemantics();
  for (const rule of uncited) console.error(`${rule} is cited by no test.`);
  for (const citation of unknown) console.error(`${citation} is no rule.`);
  for (const rule of doubled) console.error(`${rule} stands for two rules.`);
  if (uncited.length + unknown.length + doubled.length > 0) process.exitCode = 1;
  else console.log(`All ${rules} rules are cited.`);
}
