import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';
import { WaymarkError } from '../core/error.ts';
import { type Command, type CommandCall, commonOptions, type OptionSpecs } from './command.ts';
import { nearest } from './text/nearest.ts';

/** The parsed arguments after a command's name. */
export type ParsedArguments = Pick<CommandCall, 'args' | 'options'>;

/** Parses the arguments of a command. A mistake is INVALID_ARGUMENT, and the message says what is expected. */
export function parseArguments(
  command: Pick<Command, 'name' | 'usage' | 'options' | 'hint'>,
  argv: readonly string[],
): ParsedArguments {
  const specs: OptionSpecs = { ...command.options, ...commonOptions };
  const { values, positionals } = parse(command, specs, argv);
  if (values.help !== true) checkCount(command, positionals);
  return { args: positionals, options: values as CommandCall['options'] };
}

function parse(
  command: Pick<Command, 'name' | 'hint'>,
  specs: OptionSpecs,
  argv: readonly string[],
): { readonly values: Record<string, unknown>; readonly positionals: readonly string[] } {
  const options: ParseArgsOptionsConfig = Object.fromEntries(
    Object.entries(specs).map(([name, { type, short, multiple }]) => [
      name,
      { type, ...(short !== undefined && { short }), ...(multiple === true && { multiple }) },
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

/** Parses the text of an option as a whole number of at least `least`. */
export function wholeNumber(text: string, name: string, least = 0): number {
  const number = Number(text);
  if (Number.isInteger(number) && number >= least && text.trim() !== '') return number;
  throw usageError(`--${name} takes a whole number, ${least} or more, not "${text}".`);
}
