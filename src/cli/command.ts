import type { Terminal } from './terminal.ts';

/** One option of a command. */
export interface OptionSpec {
  readonly type: 'string' | 'boolean';
  /** One letter, for `-o`. */
  readonly short?: string;
  /** Can be repeated. */
  readonly multiple?: boolean;
  /** The name of the value in the help: `--port <number>`. */
  readonly value?: string;
  /** One line of help. */
  readonly about: string;
  /** Deletes data or skips a safeguard: never suggested for a mistyped option. */
  readonly destructive?: boolean;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

/** The parsed options, by name. */
export type OptionValues<Specs extends OptionSpecs> = {
  readonly [Name in keyof Specs]?: Specs[Name]['type'] extends 'boolean'
    ? boolean
    : Specs[Name] extends { readonly multiple: true }
      ? readonly string[]
      : string;
};

/** Options of every command. */
export const commonOptions = {
  help: { type: 'boolean', short: 'h', about: 'Show this help' },
  debug: { type: 'boolean', about: 'Show the stack trace of errors' },
} as const satisfies OptionSpecs;

/** The arguments of a command, parsed. */
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
  /** A longer description; shown by `--help`. */
  readonly about?: string;
  /** Shown after an unknown option, or with too many arguments. */
  readonly hint?: string;
  /** Deletes data or stops work: never suggested for a mistyped command. */
  readonly destructive?: boolean;
  /** Command lines to copy, without the leading `waymark`. */
  readonly examples?: readonly string[];
  readonly options: OptionSpecs;
  /** Resolves to the exit code; `undefined` is 0. */
  run(call: CommandCall): Promise<number | undefined>;
}

/** Declares a command. The types of its options are inferred from their specs. */
export function defineCommand<const Specs extends OptionSpecs>(
  command: Omit<Command, 'options' | 'run'> & {
    readonly options: Specs;
    run(call: CommandCall<Specs>): Promise<number | undefined> | Promise<void>;
  },
): Command {
  return {
    ...command,
    // The values were parsed with the specs that the type is inferred from.
    run: async (call) => (await command.run(call as CommandCall<Specs>)) ?? undefined,
  };
}

/** The option of every command that prints data. */
export const jsonOption = {
  json: { type: 'boolean', about: 'Print JSON, for scripts' },
} as const satisfies OptionSpecs;
