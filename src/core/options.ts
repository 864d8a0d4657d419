import { likely } from './closest.ts';
import { invalid } from './error.ts';

/**
 * The table of an options type: each name with the kinds of value that it takes; `true` takes any. A name that is missing in the
 * table, or that the type does not have, does not compile.
 */
export type OptionNames<Options> = { readonly [Name in keyof Options]-?: Kinds };

type Kinds = true | Kind | readonly Kind[];

/** Refuses options that do not exist, as {@link checkNames} does, and values of another kind than the table says. */
export function checkOptions(
  given: object,
  names: Readonly<Record<string, Kinds>>,
  what: string,
  renamed?: Readonly<Record<string, string>>,
): void {
  checkNames(given, names, what, renamed);
  for (const [name, kinds] of Object.entries(names)) {
    const value: unknown = (given as Record<string, unknown>)[name];
    if (kinds === true || value === undefined) continue;
    const allowed = [kinds].flat();
    if (allowed.some((kind) => isKind(value, kind))) continue;
    const expected = allowed.map((kind) => kindNames[kind]).join(' or ');
    const isText = kinds === 'number' && typeof value === 'string';
    const shown = isText ? `"${value.slice(0, 40)}"` : kindOf(value);
    throw invalid(`\`${name}\` of ${what} must be ${expected}, and is ${shown}.`);
  }
}

/**
 * Refuses options that do not exist, so that a mistyped one is not ignored. `what` names whose options they are, and `renamed` what
 * options of earlier versions, and of other libraries, are called here, or in a sentence what to do instead.
 */
export function checkNames(
  given: object,
  names: Readonly<Record<string, Kinds>>,
  what: string,
  renamed: Readonly<Record<string, string>> = {},
): void {
  for (const name of Object.keys(given)) {
    if (Object.hasOwn(names, name) || (given as Record<string, unknown>)[name] === undefined)
      continue;
    const now = renamed[name];
    if (now !== undefined) {
      const hint = now.includes(' ') ? now : `It is called "${now}".`;
      throw invalid(`Unknown option "${name}" of ${what}. ${hint}`);
    }
    const known = Object.keys(names);
    const meant = likely(name, known);
    const hint =
      meant === undefined
        ? `The options are: ${known.sort().join(', ')}.`
        : `Did you mean "${meant}"?`;
    throw invalid(`Unknown option "${name}" of ${what}. ${hint}`);
  }
}

type Kind = 'text' | 'number' | 'function' | 'list' | 'object' | 'boolean';

const kindNames: Readonly<Record<Kind, string>> = {
  text: 'a text',
  number: 'a number',
  function: 'a function',
  list: 'a list',
  object: 'an object',
  boolean: 'true or false',
};

function isKind(value: unknown, kind: Kind): boolean {
  if (kind === 'list') return Array.isArray(value);
  if (kind === 'text') return typeof value === 'string';
  // JavaScript would continue with `NaN`.
  return typeof value === kind && value !== null && !Array.isArray(value) && !Number.isNaN(value);
}

/** A value in the words of an error message. */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined || Number.isNaN(value)) return String(value);
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'string') return `the text "${value.slice(0, 40)}"`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

/** Refuses an array where a function takes its values one by one; `call` is how it is called, such as `on`. */
export function checkVariadic(values: readonly unknown[], call: string): void {
  if (!values.some(Array.isArray)) return;
  throw invalid(
    `${call}() takes its values one by one, and got an array. Write ${call}(...values).`,
  );
}

/** Refuses a value that is not one of those that an option takes; `what` names the option. */
export function checkChoice(value: string, choices: readonly string[], what: string): void {
  if (choices.includes(value)) return;
  const listed = choices.map((choice) => `"${choice}"`).join(' or ');
  throw invalid(`The ${what} cannot be "${String(value)}". Expected ${listed}.`);
}
