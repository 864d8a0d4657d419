import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { App } from '../../app.ts';
import { defined } from '../../core/json/json.ts';
import {
  type ReplayOptions,
  type ReplayReport,
  replay as replaySessions,
  type SessionSource,
  scriptedModelFrom,
} from '../../replay/index.ts';
import { defineCommand, flag, number, type OptionValues, oneOf, option } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { UsageError } from '../parse-arguments.ts';
import { closeApp, loadApp } from '../source/load-app.ts';
import { agentsOptions } from '../source/open-agents.ts';
import { scopeOptions } from '../source/open-store.ts';
import { stoppable, type Terminal } from '../terminal.ts';
import { count, safe } from '../text/format.ts';

const options = {
  file: agentsOptions.file,
  with: option('file', 'A file that exports the changed app'),
  model: option('name', 'A model of the app, or "recorded" for the recorded answers'),
  system: option('file', 'A file with a different system prompt'),
  tools: option('mode', 'recorded or live, for all tools or as name=mode [recorded]', {
    multiple: true,
    takes: 'recorded, live or name=mode',
    read(text: string) {
      const at = text.lastIndexOf('=');
      const mode = text.slice(at + 1);
      const name = at < 0 ? '*' : text.slice(0, at);
      return mode === 'recorded' || mode === 'live' ? ([name, mode] as const) : undefined;
    },
  }),
  mode: option(
    'mode',
    'turns or conversation [turns]',
    oneOf('turns or conversation', ['turns', 'conversation']),
  ),
  'custom-agents': flag('Also run the code of custom agents'),
  all: flag('Every session'),
  query: option('text', 'Sessions that contain this text'),
  limit: number('number', 'At most this many sessions', { least: 1 }),
  ignore: option('what', 'A kind or path of differences to ignore, such as "text"', {
    multiple: true,
  }),
  concurrency: number('number', 'Sessions at a time [4]', { least: 1 }),
  budget: number('tokens', 'Stop when the replay has used this many tokens', { least: 1 }),
  max: option('number', 'How many turns may differ, as a number or a percentage [0]', {
    takes: 'a number or a percentage such as 5%',
    read(text: string) {
      const [, amount, percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(text) ?? [];
      return amount === undefined
        ? undefined
        : { amount: Number(amount), isShare: percent === '%' };
    },
  }),
  report: option('form', 'json or text [text]', oneOf('json or text', ['json', 'text'])),
  out: option('file', 'The file for the report [standard output]', { short: 'o' }),
  resume: option('file', 'Keep results in this file, and continue from it'),
  ...scopeOptions,
};

type Options = OptionValues<typeof options>;

export const replay = defineCommand({
  name: 'replay',
  summary: 'Replay recorded sessions with changes, and report what differs',
  usage: '[session|file]…',
  about:
    'Sessions come from the store of the app, or from files written by "waymark export". They are replayed in memory, and the\nstore is only read. Tool results come from the recording, unless you pass --tools live. Exits with 1 if more turns\ndiffer than --max allows.',
  examples: [
    'replay 019b2f6e-… --system new-prompt.txt',
    'replay sessions.jsonl --model recorded --report json',
    'replay --all --agent trip --with agents-next.ts --report json --out report.json --max 5%',
  ],
  options,
  async run({ args, options: given, terminal }) {
    const { cwd, note, progress } = terminal;
    const sessions = sourceOf(args, given);
    const { app } = await loadApp(given.file, cwd, 'reading');
    let changed: App | undefined;
    try {
      if (given.with !== undefined) ({ app: changed } = await loadApp(given.with, cwd, 'reading'));
      const changes = await changesOf(given, changed, cwd);
      return await stoppable(terminal, async (signal) => {
        try {
          const report = await replaySessions(app, {
            sessions,
            with: changes,
            ...settingsOf(given, cwd),
            signal,
            onProgress: ({ turns, divergent }) =>
              progress(`Replayed ${count(turns, 'turn')}, ${divergent} differ …`),
          });
          await show(report, given, terminal);
          if (report.turns.length === 0) note('No turn was replayed.');
          return exitCodeFor(report, given.max);
        } catch (error) {
          if (!signal.aborted) throw error;
          const { resume } = given;
          note(resume === undefined ? 'Stopped.' : `Stopped. Continue with --resume ${resume}.`);
          return exitCode.interrupted;
        }
      });
    } finally {
      await closeApp(app);
      if (changed !== undefined) await closeApp(changed);
    }
  },
});

function exitCodeFor({ turns, divergent }: ReplayReport, max: Options['max']): number {
  if (turns.length === 0) return exitCode.notFound;
  const { amount, isShare } = max ?? { amount: 0, isShare: false };
  const most = isShare ? (turns.length * amount) / 100 : amount;
  return divergent > most ? exitCode.failed : exitCode.ok;
}

function sourceOf(args: readonly string[], given: Options): SessionSource {
  const { all, query, limit, agent, owner } = given;
  if (args.length > 0) {
    if (all || query !== undefined)
      throw new UsageError('Name sessions, or use --all or --query, not both.');
    return args;
  }
  if (!all && query === undefined && agent === undefined)
    throw new UsageError('Name sessions or files, or use --all, --query or --agent.');
  return defined({ query, limit, agent, owner });
}

async function changesOf(
  { model, system }: Options,
  app: App | undefined,
  cwd: string,
): Promise<NonNullable<ReplayOptions['with']>> {
  const text = system === undefined ? undefined : await readFile(resolve(cwd, system), 'utf8');
  const changes = defined({ app, system: text === undefined ? undefined : () => text });
  if (model !== 'recorded') return { ...changes, ...defined({ model }) };
  return (session) => ({ ...changes, model: scriptedModelFrom(session) });
}

function settingsOf(given: Options, cwd: string): Omit<ReplayOptions, 'sessions'> {
  const { mode = 'turns', tools = [], ignore, concurrency, budget, resume } = given;
  return {
    tools: Object.fromEntries(tools),
    mode,
    ...(given['custom-agents'] && { customAgents: 'run' }),
    ...defined({ ignore, concurrency }),
    ...(budget !== undefined && { budget: { tokens: budget } }),
    ...(resume !== undefined && { resume: resolve(cwd, resume) }),
  };
}

async function show(
  report: ReplayReport,
  { report: form, out }: Options,
  { cwd, note, write }: Terminal,
): Promise<void> {
  const text = form === 'json' ? `${JSON.stringify(report)}\n` : textReport(report);
  if (out === undefined) return write(text);
  await writeFile(resolve(cwd, out), text);
  note(`Wrote the report to ${out}: ${summary(report)}`);
}

function textReport(report: ReplayReport): string {
  const lines: string[] = [];
  for (const { sessionId, turnIndex, divergences } of report.turns) {
    if (divergences.length === 0) continue;
    lines.push(`${sessionId} turn ${turnIndex + 1}`);
    for (const { path, recorded, replayed } of divergences)
      lines.push(`  ${path}: ${short(recorded)} → ${short(replayed)}`);
  }
  for (const { sessionId, turnIndex, reason } of report.skipped)
    lines.push(
      `Skipped ${sessionId}${turnIndex === undefined ? '' : ` turn ${turnIndex + 1}`}: ${reason}`,
    );
  lines.push(summary(report));
  return `${safe(lines.join('\n'))}\n`;
}

function short(value: unknown): string {
  if (value === undefined) return '(nothing)';
  const text = JSON.stringify(value);
  return text.length <= 120 ? text : `${text.slice(0, 120)}…`;
}

function summary({ turns, divergent, recorded, replayed, skipped, stopped }: ReplayReport): string {
  const ended = stopped === undefined ? '' : ' The budget is used up.';
  return `${divergent} of ${count(turns.length, 'turn')} differ, ${skipped.length} skipped. Tokens: ${recorded.tokens} recorded, ${replayed.tokens} replayed.${ended}`;
}
