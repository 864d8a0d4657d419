import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { editDistance } from '../core/closest.ts';
import { WaymarkError } from '../core/error.ts';
import { type AnyCall, type Command, commonOptions, type OptionSpecs } from './command.ts';

/** The parsed arguments after a command's name. */
export type ParsedArguments = Pick<AnyCall, 'args' | 'options'>;

/** Parses the arguments of a command. A mistake is INVALID_ARGUMENT, and the message says what is expected. */
export function parseArguments(
  command: Pick<Command, 'name' | 'usage' | 'options' | 'hint'>,
  argv: readonly string[],
): ParsedArguments {
  const specs: OptionSpecs = { ...command.options, ...commonOptions };
  const { values, positionals } = parse(command, specs, argv);
  if (values.help === true) return { args: [], options: { help: true } };
  checkCount(command, positionals);
  for (const [name, { type, least = 0 }] of Object.entries(specs)) {
    const text = values[name];
    if (type === 'number' && text !== undefined)
      values[name] = wholeNumber(String(text), `--${name}`, { least, command: command.name });
  }
  return { args: positionals, options: values };
}

function parse(
  command: Pick<Command, 'name' | 'hint'>,
  specs: OptionSpecs,
  argv: readonly string[],
): { readonly values: Record<string, unknown>; readonly positionals: readonly string[] } {
  const options: ParseArgsOptionsConfig = Object.fromEntries(
    Object.entries(specs).map(([name, { type, short, multiple = false }]) => [
      name,
      {
        type: type === 'boolean' ? type : 'string',
        multiple,
        ...(short !== undefined && { short }),
      },
    ]),
  );
  try {
    return parseArgs({ args: [...argv], options, allowPositionals: true, allowNegative: true });
  } catch (error) {
    throw wrongOption(command, specs, error);
  }
}

function wrongOption(
  { name, hint }: Pick<Command, 'name' | 'hint'>,
  specs: OptionSpecs,
  error: unknown,
): WaymarkError {
  const message = error instanceof Error ? error.message : String(error);
  const unknown = /Unknown option '(--?[\w-]+)'/.exec(message)?.[1];
  if (unknown === undefined) return usageError(`${message.replace(/\.$/, '')}.`, name);
  const safe = Object.keys(specs).filter((each) => !specs[each]?.destructive);
  const near = nearest(unknown.replace(/^-+/, ''), safe);
  const meant = near === undefined ? '' : ` Did you mean --${near}?`;
  const more = hint === undefined ? '' : ` ${hint}`;
  return usageError(`"waymark ${name}" has no option ${unknown}.${meant}${more}`, name);
}

// `<a>` is required, `[b]` is optional, `[c...]` can be repeated.
function checkCount(
  { name, usage, hint }: Pick<Command, 'name' | 'usage' | 'hint'>,
  args: readonly string[],
): void {
  const places = usage.match(/<[^>]+>|\[[^\]]+\]/g) ?? [];
  const needed = places.filter((place) => place.startsWith('<'));
  const isOpen = places.some((place) => place.includes('...'));
  const missing = needed[args.length];
  if (missing !== undefined) {
    throw usageError(`${missing} is missing: waymark ${name} ${usage}.`, name);
  }
  if (!isOpen && args.length > places.length) {
    const expected = places.length === 0 ? 'takes no arguments' : `takes ${usage}`;
    const more = hint === undefined ? '' : ` ${hint}`;
    throw usageError(
      `"waymark ${name}" ${expected}, but "${args[places.length]}" was given as well.${more}`,
      name,
    );
  }
}

/** An error in how a command was called. */
export function usageError(message: string, command?: string): WaymarkError {
  const hint = command === undefined ? 'waymark --help' : `waymark ${command} --help`;
  return new WaymarkError('INVALID_ARGUMENT', `${message} See "${hint}".`);
}

/** Parses a whole number of at least `least`; `name` is that of its option. */
function wholeNumber(
  text: string,
  name: string,
  { least, command }: { readonly least: number; readonly command: string },
): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= least && text.trim() !== '') return number;
  throw usageError(`${name} takes a whole number, ${least} or more, not "${text}".`, command);
}

/** The candidate closest to a mistyped word; `undefined` when none is close. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = Math.max(1, Math.floor(word.length / 2)) + 1;
  for (const candidate of candidates) {
    const steps = candidate.startsWith(word) ? 1 : editDistance(word, candidate);
    if (steps >= least) continue;
    least = steps;
    best = candidate;
  }
  return best;
}
