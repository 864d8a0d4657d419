import { internalsOf } from '../../agent/define/create-agent.ts';
import type { App } from '../../app.ts';
import { failedPrecondition } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { testCrashes } from '../../testing/crash-test/crash-test.ts';
import type { CrashTestOptions } from '../../testing/crash-test/options.ts';
import { isRepeatable } from '../../testing/crash-test/probe.ts';
import { storeOf } from '../../testing/crash-test/real-process.ts';
import {
  type CrashReport,
  formatCrashReport,
  crashTest as testCrashesOf,
} from '../../testing/index.ts';
import {
  defineCommand,
  flag,
  jsonOption,
  number,
  type OptionValues,
  oneOf,
  option,
} from '../command.ts';
import { renewModules } from '../crash/fresh-modules.ts';
import { crashChild, crashChildMark, killRunner } from '../crash/kill-processes.ts';
import { exitCode } from '../exit-code.ts';
import { UsageError } from '../parse-arguments.ts';
import { closeApp, findAgentsFile, loadApp } from '../source/load-app.ts';
import { stoppable } from '../terminal.ts';
import { safe } from '../text/format.ts';

const options = {
  file: option('path', 'The file that exports the app; same as the argument', { short: 'f' }),
  agent: option('name', 'The agent [the only one]', { short: 'a' }),
  input: option('text', 'The message of the turn', { short: 'i' }),
  sessions: option('session|file', 'Recorded sessions, whose turns are tested instead', {
    multiple: true,
  }),
  model: option('name', 'A model of the app [that of the agent, or the recorded answers]'),
  tools: option(
    'mode',
    'recorded or live, for recorded sessions [recorded]',
    oneOf('recorded or live', ['recorded', 'live']),
  ),
  ignore: option('path', 'Values that may differ, such as "/custom/number"', { multiple: true }),
  timeout: number('ms', 'How long the turn may take [10000]', { least: 1 }),
  kill: flag('Use real processes and kill -9, on the store of the app'),
  'allow-effects': flag('Run tools that are not declared as repeatable', { destructive: true }),
  ...jsonOption,
};

type Options = OptionValues<typeof options>;

export const crashTest = defineCommand({
  name: 'crash-test',
  summary: 'Kill a turn at every point, and report what happens twice or is lost',
  usage: '[file]',
  about:
    'Runs a turn again and again, and kills its process before and after each store write, model call and tool call. The\ntools really run, many times: use fakes or test accounts, and --allow-effects. Without --kill, each process is\nsimulated with fresh modules and a store in memory. Exits with 1 if an effect was repeated, or a turn ended\ndifferently. Studio opens the report that --json prints.',
  examples: [
    "crash-test agents.ts --agent desk --input 'Refund order 7' --allow-effects",
    'crash-test --sessions sessions.jsonl --json > report.json',
    "crash-test --agent desk --input 'Refund order 7' --allow-effects --kill",
  ],
  options,
  async run({ args, options: given, terminal }) {
    const { cwd, env, note, progress } = terminal;
    const path = findAgentsFile(given.file ?? args[0], cwd);
    if (env[crashChildMark] !== undefined) return await crashChild(path, cwd);
    checkUsage(given);
    const { app } = await loadApp(path, cwd, 'reading');
    try {
      if (given['allow-effects'] !== true) await refuseEffects(app, given);
      return await stoppable(terminal, async (signal) => {
        const settings = {
          ...settingsOf(given),
          signal,
          onProgress: ({ done, of }: { done: number; of: number }) =>
            progress(`Crashed at ${done} of ${of} points …`),
        };
        try {
          const report = given.kill
            ? await killed(app, path, settings, cwd)
            : await testCrashesOf(freshApps(path, cwd), settings);
          if (report.points.length === 0) note('No turn was tested.');
          const code =
            report.points.length === 0
              ? exitCode.notFound
              : report.ok
                ? exitCode.ok
                : exitCode.failed;
          return { text: safe(formatCrashReport(report)), json: report, code };
        } catch (error) {
          if (!signal.aborted) throw error;
          note('Stopped.');
          return exitCode.interrupted;
        }
      });
    } finally {
      await closeApp(app);
    }
  },
});

function checkUsage({ input, sessions, kill, tools }: Options): void {
  if ((input === undefined) === (sessions === undefined))
    throw new UsageError('Use either --input or --sessions.');
  if (kill && input === undefined) throw new UsageError('--kill works with --input.');
  if (tools !== undefined && sessions === undefined)
    throw new UsageError('--tools works with --sessions: with --input, the tools run.');
}

function settingsOf({
  agent,
  input,
  sessions,
  model,
  tools,
  ignore,
  timeout,
}: Options): CrashTestOptions {
  return defined({ agent, input, sessions, model, tools, ignore, timeout });
}

/** Each simulated process loads the modules of the app again, so that what they keep in variables is lost with it. */
function freshApps(path: string, cwd: string): () => Promise<App> {
  const queryOf = renewModules();
  let processes = 0;
  return async () => (await loadApp(path, cwd, 'reading', queryOf(++processes))).app;
}

/** Tests with real processes, over sessions of an owner that exists only for the test. */
async function killed(
  app: App,
  path: string,
  settings: CrashTestOptions,
  cwd: string,
): Promise<CrashReport> {
  const [only] = app.agents();
  const store = storeOf(app, settings.agent ?? only?.name ?? '');
  if (store.name === 'memory') {
    throw failedPrecondition(
      'A store in memory is lost with its process. Give the app a store on disk, such as sqliteStore(), or leave out --kill.',
    );
  }
  const owner = `crash-test-${crypto.randomUUID()}`;
  const { timeout = killTimeout } = settings;
  try {
    return await testCrashes(
      app,
      { ...settings, timeout },
      killRunner(path, { owner, timeout, cwd }),
    );
  } finally {
    await store.maintenance?.eraseOwner(owner);
  }
}

/** A process needs a while to start. */
const killTimeout = 30_000;

/** Refuses to run code that may have effects. */
async function refuseEffects(app: App, { agent: name, sessions, tools }: Options): Promise<void> {
  const agent =
    app.agents().length === 1 && name === undefined ? app.agents()[0] : app.agent(name ?? '');
  if (agent === undefined) return;
  const { spec } = internalsOf(agent);
  const repair = 'Use fakes or test accounts, and pass --allow-effects.';
  if (spec.withChanges === undefined) {
    throw new UsageError(
      `Agent "${agent.name}" is a custom agent: a crash test runs its code many times, with all effects. ${repair}`,
    );
  }
  if (sessions !== undefined && tools !== 'live') return;
  const found = [...((await spec.tools?.())?.values() ?? [])].filter((tool) => !isRepeatable(tool));
  if (found.length === 0) return;
  throw new UsageError(
    `A crash test runs the tools of agent "${agent.name}" many times, and these may have effects: ${found.map((tool) => tool.name).join(', ')}. ${repair} Declare a tool that may run twice with metadata: { annotations: { readOnlyHint: true } }.`,
  );
}
