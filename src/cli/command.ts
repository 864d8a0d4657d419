import type { Terminal } from './terminal.ts';

/** One option of a command; {@link flag}, {@link option} and {@link number} make one. */
export interface OptionSpec<Value = unknown> {
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
  /** The values that the option takes, for the error about another one. */
  readonly takes?: string;
  /** Reads a value; `undefined` if it is not one of those. */
  read?(text: string): Value | undefined;
}

export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

type More = Omit<OptionSpec, 'type' | 'value' | 'about'>;

/** An option without a value. */
export function flag(about: string, more: More = {}) {
  return { type: 'boolean', about, ...more } as const;
}

/** An option with a value, named in the help: `--out <file>`. */
export function option<const Given extends More = object>(
  value: string,
  about: string,
  more?: Given,
) {
  return { type: 'string', value, about, ...(more as Given) } as const;
}

/** An option whose value is a whole number of at least `least`. */
export function number(
  value: string,
  about: string,
  { least = 0, short }: { readonly least?: number; readonly short?: string } = {},
) {
  const read = (text: string): number | undefined => {
    const given = text.trim() === '' ? Number.NaN : Number(text);
    return Number.isSafeInteger(given) && given >= least ? given : undefined;
  };
  const letter = short === undefined ? {} : { short };
  return option(value, about, { ...letter, takes: `a whole number, ${least} or more`, read });
}

/** For an option that takes one of a few words. */
export function oneOf<const Word extends string>(takes: string, words: readonly Word[]) {
  return { takes, read: (text: string) => words.find((word) => word === text) };
}

type ValueOf<Spec> = Spec extends { readonly type: 'boolean' }
  ? boolean
  : Spec extends { read(text: string): infer Value }
    ? Exclude<Value, undefined>
    : string;

/** The parsed options, by name. */
export type OptionValues<Specs extends OptionSpecs> = {
  readonly [Name in keyof Specs]?: Specs[Name] extends { readonly multiple: true }
    ? readonly ValueOf<Specs[Name]>[]
    : ValueOf<Specs[Name]>;
};

export const commonOptions = {
  help: flag('Show this help', { short: 'h' }),
  debug: flag('Show the stack trace of errors'),
};

/** The option of every command that prints data. */
export const jsonOption = { json: flag('Print JSON, for scripts') };

/** The arguments of any command, parsed. */
export interface AnyCall {
  readonly args: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
  readonly terminal: Terminal;
}

export interface CommandCall<Specs extends OptionSpecs> extends AnyCall {
  readonly options: OptionValues<Specs & typeof commonOptions>;
}

/** The data of a command. `--json` prints `json` in lines, or `receipt` on one; otherwise the text is printed, then the note. */
export type Result = {
  readonly text?: string | undefined;
  /** Goes to the standard error. */
  readonly note?: string | undefined;
  /** The exit code. @default 0 */
  readonly code?: number;
} & ({ readonly json: unknown } | { readonly receipt: unknown });

/** The outcome of a command: what is printed, or an exit code. */
export type Outcome = Result | number | undefined | void;

/** The description of a command; the help, the parser and docs/cli.md come from it. */
export interface CommandInfo {
  readonly name: string;
  /** One line for the list of commands. */
  readonly summary: string;
  /** The arguments, as the help shows them: `<a> <b>`, `[file]`. @default none */
  readonly usage?: string;
  /** A longer description; shown by `--help`. */
  readonly about?: string;
  /** Shown after an unknown option, or with too many arguments. */
  readonly hint?: string;
  /** Deletes data or stops work: never suggested for a mistyped command. */
  readonly destructive?: boolean;
  /** Command lines to copy, without the leading `waymark`. */
  readonly examples?: readonly string[];
}

/** A command with the types of its options, which are inferred from their specs. */
export interface Declaration<
  Specs extends OptionSpecs,
  More extends OptionSpecs = Record<never, never>,
  Opened = unknown,
> extends CommandInfo {
  readonly options?: Specs;
  /** Refuses arguments that do not fit together, before anything is opened. */
  check?(call: CommandCall<Specs & More>): void;
  run(call: CommandCall<Specs & More> & Opened): Promise<Outcome>;
}

export interface Command extends CommandInfo {
  readonly usage: string;
  readonly options: OptionSpecs;
  /** Resolves to the exit code; `undefined` is 0. */
  run(call: AnyCall): Promise<number | undefined>;
}

export function defineCommand<const Specs extends OptionSpecs = Record<never, never>>(
  command: Declaration<Specs>,
): Command {
  return openingCommand(command, {}, async (_, run) => await run({}));
}

/** Declares a command that runs with something open, such as a store, and has the options that name it. */
export function openingCommand<Specs extends OptionSpecs, More extends OptionSpecs, Opened>(
  command: Declaration<Specs, More, Opened>,
  moreOptions: More,
  open: (call: CommandCall<More>, run: (opened: Opened) => Promise<void>) => Promise<void>,
): Command {
  return {
    ...command,
    usage: command.usage ?? '',
    options: { ...command.options, ...moreOptions },
    async run(given) {
      // The values were parsed with the specs that the type is inferred from.
      const call = given as CommandCall<Specs & More>;
      command.check?.(call);
      let code: number | undefined;
      await open(given as CommandCall<More>, async (opened) => {
        code = present(await command.run({ ...call, ...opened }), given);
      });
      return code;
    },
  };
}

function present(outcome: Outcome, { options, terminal }: AnyCall): number | undefined {
  if (typeof outcome !== 'object') return outcome ?? undefined;
  const { text, note } = outcome;
  if (options.json === true) {
    const isReceipt = 'receipt' in outcome;
    const data = isReceipt ? outcome.receipt : outcome.json;
    terminal.print(JSON.stringify(data, null, isReceipt ? undefined : 2));
  } else {
    if (text !== undefined) terminal.print(text);
    if (note !== undefined) terminal.note(note);
  }
  return outcome.code;
}
