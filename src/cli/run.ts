import { isReported } from '../agent/contract/error-reports.ts';
import { errorText, isWaymarkError, messageOf, toErrorBody } from '../core/error.ts';
import type { Command } from './command.ts';
import { groups } from './commands.ts';
import { exitCode, exitCodeOf } from './exit-code.ts';
import { commandHelp, generalHelp } from './help.ts';
import { version } from './package-root.ts';
import { didYouMean, parseArguments, UsageError } from './parse-arguments.ts';
import type { Terminal } from './terminal.ts';
import { safe } from './text/format.ts';

const commands = groups.flatMap(([, list]) => list);

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
  const { style, print } = terminal;
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    const about = name === 'help' ? rest[0] : undefined;
    print(about === undefined ? generalHelp(groups, style) : commandHelp(find(about), style));
    return name === undefined ? exitCode.usage : exitCode.ok;
  }
  if (name === '--version' || name === '-v') {
    print(version());
    return exitCode.ok;
  }
  const command = find(name);
  const { args, options } = parseArguments(command, rest);
  if (options.help === true) {
    print(commandHelp(command, style));
    return exitCode.ok;
  }
  return (await command.run({ args, options, terminal })) ?? exitCode.ok;
}

function find(name: string): Command {
  const command = commands.find((each) => each.name === name);
  if (command) return command;
  // A typo must not lead to a command that deletes something.
  const safe = commands.flatMap((each) => (each.destructive ? [] : each.name));
  throw new UsageError(`There is no command "${name}".${didYouMean(name, safe)}`);
}

/** Prints the message to the standard error; with `--json` the error as data, with `--debug` the stack. */
function report(error: unknown, argv: readonly string[], { note, style }: Terminal): void {
  const message = messageFor(error, argv);
  if (argv.includes('--json')) note(JSON.stringify({ error: { ...toErrorBody(error), message } }));
  else note(`${style.bad('✗')} ${safe(message)}`);
  // The app has already reported and printed it.
  if (argv.includes('--debug') && !isReported(error)) note(safe(errorText(error)));
}

// The command runs on the user's machine, so the original message is shown.
function messageFor(error: unknown, [name]: readonly string[]): string {
  if (!isWaymarkError(error)) return messageOf(error).split('\n')[0] ?? '';
  if (!(error instanceof UsageError)) return error.message;
  const command = commands.some((each) => each.name === name) ? `${name} --help` : '--help';
  return `${error.message} See "waymark ${command}".`;
}
