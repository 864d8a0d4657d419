import type { Terminal } from './terminal.ts';

/** One option of a command. */
export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  /** One letter, for `-o`. */
  readonly short?: string;
  /** May be given more than once. */
  readonly multiple?: boolean;
  /** What stands for the value in the help: `--port <number>`. */
  readonly value?: string;
  /** One line of help. */
  readonly about: string;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

/** What was given for the options, by name. */
export type OptionValues<Specs extends OptionSpecs> = {
  readonly [Name in keyof Specs]?: Specs[Name]['type'] extends 'boolean'
    ? boolean
    : Specs[Name] extends { readonly multiple: true }
      ? readonly string[]
      : string;
};

/** Options that every command has. */
export const commonOptions = {
  help: { type: 'boolean', short: 'h', about: 'Show this help' },
  debug: { type: 'boolean', about: 'Show where an error comes from' },
} as const satisfies OptionSpecs;

/** What a command is called with. */
export interface CommandCall<Specs extends OptionSpecs = OptionSpecs> {
  readonly args: readonly string[];
  readonly options: OptionValues<Specs & typeof commonOptions>;
  readonly terminal: Terminal;
}

/** One command of the command line. */
export interface Command {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** The arguments, as the help shows them: `<a> <b>`, `[file]`. */
  readonly usage: string;
  /** What else there is to know; shown by `--help`. */
  readonly about?: string;
  /** Command lines to copy, without the leading `waymark`. */
  readonly examples?: readonly string[];
  readonly options: OptionSpecs;
  /** Resolves to the exit code; nothing is 0. */
  run(call: CommandCall): Promise<number | undefined>;
}

/** Declares a command; the types of its options are read off their specs. */
export function defineCommand<const Specs extends OptionSpecs>(
  command: Omit<Command, 'options' | 'run'> & {
    readonly options: Specs;
    run(call: CommandCall<Specs>): Promise<number | undefined> | Promise<void>;
  },
): Command {
  return {
    ...command,
    // The values were parsed by the very specs that their type is read off.
    run: async (call) => (await command.run(call as CommandCall<Specs>)) ?? undefined,
  };
}

/** The option of every command that prints data. */
export const jsonOption = {
  json: { type: 'boolean', about: 'Print JSON, for scripts' },
} as const satisfies OptionSpecs;
