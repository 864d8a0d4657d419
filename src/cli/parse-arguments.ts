import { parseArgs } from 'node:util';
import { editDistance } from '../core/closest.ts';
import { WaymarkError } from '../core/error.ts';
import {
  type AnyCall,
  type Command,
  commonOptions,
  type OptionSpec,
  type OptionSpecs,
} from './command.ts';

/** An error in how a command was called. Its message ends with a pointer to the help. */
export class UsageError extends WaymarkError {
  constructor(message: string) {
    super('INVALID_ARGUMENT', message);
  }
}

/** Parses the arguments after a command's name. A mistake is a {@link UsageError} that says what is expected. */
export function parseArguments(
  command: Pick<Command, 'name' | 'usage' | 'options' | 'hint'>,
  argv: readonly string[],
): Pick<AnyCall, 'args' | 'options'> {
  const options: OptionSpecs = { ...command.options, ...commonOptions };
  const { values, positionals } = parse(command, options, argv);
  if (values.help === true) return { args: [], options: { help: true } };
  checkCount(command, positionals);
  for (const [name, given] of Object.entries(values)) {
    const spec = options[name] ?? {};
    const read = (text: unknown): unknown => readValue(`--${name}`, spec, String(text));
    if (given !== true && given !== false)
      values[name] = Array.isArray(given) ? given.map(read) : read(given);
  }
  return { args: positionals, options: values };
}

/** Reads the value of an option, or of a variable that takes the same values. */
export function readValue<Value = string>(
  name: string,
  { takes, read }: Pick<OptionSpec<Value>, 'takes' | 'read'>,
  text: string,
): Value {
  const value = read ? read(text) : (text as Value);
  if (value !== undefined) return value;
  throw new UsageError(`${name} takes ${takes}, not "${text}".`);
}

function parse(
  { name, hint = '' }: Pick<Command, 'name' | 'hint'>,
  options: OptionSpecs,
  argv: readonly string[],
): { readonly values: Record<string, unknown>; readonly positionals: readonly string[] } {
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true, allowNegative: true });
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    const unknown = /Unknown option '(--?[\w-]+)'/.exec(message)?.[1];
    if (unknown === undefined) throw new UsageError(`${message.replace(/\.$/, '')}.`);
    const safe = Object.keys(options).filter((each) => !options[each]?.destructive);
    const meant = didYouMean(unknown.replace(/^-+/, ''), safe, (each) => `--${each}`);
    throw new UsageError(`"waymark ${name}" has no option ${unknown}.${meant} ${hint}`.trim());
  }
}

// `<a>` is required, `[b]` is optional, `[c...]` can be repeated.
function checkCount(
  { name, usage, hint = '' }: Pick<Command, 'name' | 'usage' | 'hint'>,
  args: readonly string[],
): void {
  const places = usage.match(/<[^>]+>|\[[^\]]+\]/g) ?? [];
  const missing = places.filter((place) => place.startsWith('<'))[args.length];
  if (missing !== undefined)
    throw new UsageError(`${missing} is missing: waymark ${name} ${usage}.`);
  const isOpen = places.some((place) => place.includes('...'));
  if (isOpen || args.length <= places.length) return;
  const expected = places.length === 0 ? 'takes no arguments' : `takes ${usage}`;
  const more = `but "${args[places.length]}" was given as well. ${hint}`.trim();
  throw new UsageError(`"waymark ${name}" ${expected}, ${more}`);
}

/** A question that names the candidate closest to a mistyped word, after a space; empty when none is close. */
export function didYouMean(
  word: string,
  candidates: readonly string[],
  show = (candidate: string) => `"${candidate}"`,
): string {
  let best: string | undefined;
  let least = Math.max(1, Math.floor(word.length / 2)) + 1;
  for (const candidate of candidates) {
    const steps = candidate.startsWith(word) ? 1 : editDistance(word, candidate);
    if (steps >= least) continue;
    least = steps;
    best = candidate;
  }
  return best === undefined ? '' : ` Did you mean ${show(best)}?`;
}
