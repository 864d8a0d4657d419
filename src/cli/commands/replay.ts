import { readFile, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { App } from '../../app.ts';
import {
  type ReplayChanges,
  type ReplayOptions,
  type ReplayReport,
  replay as replaySessions,
  type SessionSource,
  scriptedModelFrom,
} from '../../replay/index.ts';
import { defineCommand, flag, number, type OptionValues, option } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { UsageError } from '../parse-arguments.ts';
import { closeApp, findAgentsFile, loadApp } from '../source/load-app.ts';
import { scopeOptions } from '../source/open-store.ts';
import type { Terminal } from '../terminal.ts';
import { count, safe } from '../text/format.ts';

const options = {
  file: option('file', 'The file that exports the app [agents.ts, src/agents.ts, …]', {
    short: 'f',
  }),
  with: option('file', 'A file that exports the changed app'),
  model: option('name', 'A model of the app, or "recorded" for the recorded answers'),
  system: option('file', 'A file with a different system prompt'),
  tools: option('mode', 'recorded or live, for all tools or as name=mode [recorded]', {
    multiple: true,
  }),
  mode: option('mode', 'turns or conversation [turns]'),
  'custom-agents': flag('Also run the code of custom agents'),
  all: flag('Every session'),
  query: option('text', 'Sessions that contain this text'),
  limit: number('number', 'At most this many sessions', { least: 1 }),
  ignore: option('what', 'A kind or path of differences to ignore, such as "text"', {
    multiple: true,
  }),
  concurrency: number('number', 'Sessions at a time [4]', { least: 1 }),
  budget: number('tokens', 'Stop when the replay has used this many tokens', { least: 1 }),
  max: option('number', 'How many turns may differ, as a number or a percentage [0]'),
  report: option('form', 'json or text [text]'),
  out: option('file', 'The file for the report [standard output]', { short: 'o' }),
  resume: option('file', 'Keep results in this file, and continue from it'),
  ...scopeOptions,
};

type Options = OptionValues<typeof options>;

/** `waymark replay` */
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
  check({ options: { report = 'text', mode = 'turns' } }) {
    if (!['json', 'text'].includes(report))
      throw new UsageError(`--report takes json or text, not "${report}".`);
    if (!['turns', 'conversation'].includes(mode))
      throw new UsageError('--mode takes turns or conversation.');
  },
  async run({ args, options: given, terminal }) {
    const sessions = sourceOf(args, given);
    const isOver = overMaximum(given.max ?? '0');
    const { cwd } = terminal;
    const { app } = await loadApp(findAgentsFile(given.file, cwd), cwd, 'reading');
    const stop = new AbortController();
    const release = terminal.onInterrupt(() => stop.abort());
    let changed: App | undefined;
    try {
      if (given.with !== undefined)
        ({ app: changed } = await loadApp(findAgentsFile(given.with, cwd), cwd, 'reading'));
      const report = await replaySessions(app, {
        sessions,
        ...(await changesOf(given, changed, cwd)),
        ...settingsOf(given, cwd),
        signal: stop.signal,
        onProgress: ({ turns, divergent }) =>
          terminal.progress(`Replayed ${count(turns, 'turn')}, ${divergent} differ …`),
      });
      await show(report, given, terminal);
      if (report.turns.length === 0) {
        terminal.note('No turn was replayed.');
        return exitCode.notFound;
      }
      return isOver(report) ? exitCode.failed : exitCode.ok;
    } catch (error) {
      if (!stop.signal.aborted) throw error;
      terminal.note(
        given.resume === undefined
          ? 'Stopped.'
          : `Stopped. Continue with --resume ${given.resume}.`,
      );
      return exitCode.interrupted;
    } finally {
      release();
      await closeApp(app);
      if (changed !== undefined) await closeApp(changed);
    }
  },
});

function sourceOf(args: readonly string[], given: Options): SessionSource {
  const { all, query, limit, agent, owner } = given;
  if (args.length > 0) {
    if (all || query !== undefined)
      throw new UsageError('Name sessions, or use --all or --query, not both.');
    return args;
  }
  if (!all && query === undefined && agent === undefined)
    throw new UsageError('Name sessions or files, or use --all, --query or --agent.');
  return {
    ...(query !== undefined && { query }),
    ...(limit !== undefined && { limit }),
    ...(agent !== undefined && { agent }),
    ...(owner !== undefined && { owner }),
  };
}

async function changesOf(
  { model, system }: Options,
  app: App | undefined,
  cwd: string,
): Promise<Pick<ReplayOptions, 'with'>> {
  const changes: ReplayChanges = {
    ...(app && { app }),
    ...(system !== undefined && { system: () => text }),
    ...(model !== undefined && model !== 'recorded' && { model }),
  };
  const text = system === undefined ? '' : await readFile(resolve(cwd, system), 'utf8');
  if (model !== 'recorded') return { with: changes };
  return { with: (session) => ({ ...changes, model: scriptedModelFrom(session) }) };
}

function settingsOf(given: Options, cwd: string): Omit<ReplayOptions, 'sessions'> {
  const { mode, ignore, concurrency, budget, resume } = given;
  return {
    tools: toolModes(given.tools ?? []),
    ...(given['custom-agents'] && { customAgents: 'run' }),
    mode: mode === 'conversation' ? mode : 'turns',
    ...(ignore && { ignore }),
    ...(concurrency !== undefined && { concurrency }),
    ...(budget !== undefined && { budget: { tokens: budget } }),
    ...(resume !== undefined && { resume: resolve(cwd, resume) }),
  };
}

function toolModes(given: readonly string[]): Record<string, 'recorded' | 'live'> {
  const modes: Record<string, 'recorded' | 'live'> = {};
  for (const each of given) {
    const at = each.lastIndexOf('=');
    const mode = each.slice(at + 1);
    if (mode !== 'recorded' && mode !== 'live')
      throw new UsageError(`--tools takes recorded, live or name=mode, not "${each}".`);
    modes[at < 0 ? '*' : each.slice(0, at)] = mode;
  }
  return modes;
}

function overMaximum(max: string): (report: ReplayReport) => boolean {
  const [, amount, percent] = /^(\d+(?:\.\d+)?)(%?)$/.exec(max) ?? [];
  if (amount === undefined)
    throw new UsageError(`--max takes a number or a percentage such as 5%, not "${max}".`);
  return ({ divergent, turns }) =>
    divergent > (percent === '%' ? (turns.length * Number(amount)) / 100 : Number(amount));
}

async function show(report: ReplayReport, given: Options, terminal: Terminal): Promise<void> {
  const { report: form, out } = given;
  const text = form === 'json' ? `${JSON.stringify(report)}\n` : textReport(report);
  if (out === undefined) return terminal.write(text);
  await writeFile(resolve(terminal.cwd, out), text);
  terminal.note(`Wrote the report to ${out}: ${summary(report)}`);
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
