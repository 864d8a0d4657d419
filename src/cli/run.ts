import { isReported } from '../agent/spec/error-reports.ts';
import { errorText, isWaymarkError, messageOf, toErrorBody } from '../core/error.ts';
import type { Command } from './command.ts';
import { groups } from './commands.ts';
import { exitCode, exitCodeOf } from './exit-code.ts';
import { commandHelp, generalHelp } from './help.ts';
import { version } from './package-root.ts';
import { nearest, parseArguments, usageError } from './parse-arguments.ts';
import type { Terminal } from './terminal.ts';
import { safe } from './text/format.ts';

/** Runs one command line; resolves to its exit code and never rejects. */
export async function run(argv: readonly string[], terminal: Terminal): Promise<number> {
  try {
    return await dispatch(argv, terminal);
  } catch (error) {
    report(error, argv, terminal);
    return exitCodeOf(error);
  }
}

async function dispatch([name, ...rest]: readonly string[], terminal: Terminal): Promise<number> {
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    const about = name === 'help' ? rest[0] : undefined;
    const { style } = terminal;
    terminal.print(
      about === undefined ? generalHelp(groups, style) : commandHelp(find(about), style),
    );
    return name === undefined ? exitCode.usage : exitCode.ok;
  }
  if (name === '--version' || name === '-v') {
    terminal.print(version());
    return exitCode.ok;
  }
  const command = find(name);
  const { args, options } = parseArguments(command, rest);
  if (options.help === true) {
    terminal.print(commandHelp(command, terminal.style));
    return exitCode.ok;
  }
  return (await command.run({ args, options, terminal })) ?? exitCode.ok;
}

function find(name: string): Command {
  const commands = groups.flatMap(([, list]) => list);
  const command = commands.find((each) => each.name === name);
  if (command) return command;
  // A typo must not lead to a command that deletes something.
  const safe = commands.filter((each) => !each.destructive);
  const near = nearest(
    name,
    safe.map((each) => each.name),
  );
  const hint = near === undefined ? '' : ` Did you mean "${near}"?`;
  throw usageError(`There is no command "${name}".${hint}`);
}

/** Prints the message to the standard error; with `--json` the error as data, with `--debug` the stack. */
function report(error: unknown, argv: readonly string[], { note, style }: Terminal): void {
  if (argv.includes('--json')) {
    note(JSON.stringify({ error: { ...toErrorBody(error), message: firstLineOf(error) } }));
  } else {
    note(`${style.bad('✗')} ${safe(firstLineOf(error))}`);
  }
  // The app has already reported and printed it.
  if (argv.includes('--debug') && !isReported(error)) note(safe(errorText(error)));
}

// The command runs on the user's machine, so the original message is shown.
function firstLineOf(error: unknown): string {
  return isWaymarkError(error) ? error.message : (messageOf(error).split('\n')[0] ?? '');
}
