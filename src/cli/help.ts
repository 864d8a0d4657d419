import { type Command, commonOptions, type OptionSpec } from './command.ts';
import { exitCodeMeanings } from './exit-code.ts';
import type { Style } from './terminal.ts';

/** The commands in the order and groups of `--help`. */
export type CommandGroups = readonly (readonly [title: string, commands: readonly Command[]])[];

export function generalHelp(groups: CommandGroups, style: Style): string {
  const names = groups.flatMap(([, commands]) => commands.map(({ name }) => name));
  const width = Math.max(...names.map((name) => name.length));
  const lists = groups.map(([title, commands]) =>
    [
      style.bold(title),
      ...commands.map(({ name, summary }) => `  ${style.accent(name.padEnd(width))}  ${summary}`),
    ].join('\n'),
  );
  const exitCodes = Object.entries(exitCodeMeanings).map(
    ([code, meaning]) => `  ${code.padStart(3)}  ${meaning}`,
  );
  return [
    'waymark: create, run and inspect stateful agents.',
    `${style.bold('Usage')}\n  waymark <command> [options]`,
    ...lists,
    [style.bold('Exit codes'), ...exitCodes].join('\n'),
    'Where an id is expected, a unique prefix is enough. For the options of a command: waymark <command> --help',
  ].join('\n\n');
}

export function commandHelp(command: Command, style: Style): string {
  const { name, summary, usage, about, examples = [], options } = command;
  return [
    `${summary}.`,
    `${style.bold('Usage')}\n  waymark ${[name, usage, '[options]'].filter(Boolean).join(' ')}`,
    ...(about === undefined ? [] : [about]),
    `${style.bold('Options')}\n${optionLines({ ...options, ...commonOptions }, style)}`,
    ...(examples.length === 0
      ? []
      : [`${style.bold('Examples')}\n${examples.map((line) => `  waymark ${line}`).join('\n')}`]),
  ].join('\n\n');
}

/** An option as the help shows it: `-o, --out <file>`. */
export function optionName(name: string, { short, value, type }: OptionSpec): string {
  const letter = short === undefined ? '' : `-${short}, `;
  return `${letter}--${name}${type === 'boolean' ? '' : ` <${value ?? 'value'}>`}`;
}

function optionLines(options: Command['options'], style: Style): string {
  const rows = Object.entries(options).map(
    ([name, spec]) => [optionName(name, spec), spec.about] as const,
  );
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, about]) => `  ${style.accent(left.padEnd(width))}  ${about}`).join('\n');
}
