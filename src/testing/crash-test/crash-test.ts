import type { Agent } from '../../agent/contract/agent.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import type { App } from '../../app.ts';
import { failedPrecondition, invalid, WaymarkError } from '../../core/error.ts';
import { checkOptions } from '../../core/options.ts';
import { findSessions } from '../../replay/find-sessions.ts';
import { recordedSession } from '../../replay/recorded-session.ts';
import { scriptedModelFrom } from '../../replay/scripted-model-from.ts';
import type { CrashReport } from './crash-report.ts';
import { ModelAnswers } from './model-answers.ts';
import { type AppSource, type CrashTestOptions, crashTestOptionNames } from './options.ts';
import { type Difference, differences, shorten } from './outcome.ts';
import { type TestedTurn, toCrashReport } from './report.ts';
import {
  defaultTimeout,
  type RunResult,
  type RunTurn,
  runOnce,
  type TurnCase,
} from './run-once.ts';
import { watchNetwork } from './watch-network.ts';

/** The most crash points of a turn. */
const maxPoints = 5_000;

/**
 * Runs a turn of an agent again and again. Each time its process dies at another point: before or after a write to the store, a model call or
 * a tool call. A second process continues the turn, and the report compares the outcomes. The store of the app is not used: each run
 * has one in memory. The agent's tools run, with their effects.
 *
 * @example
 * const report = await crashTest(app, { agent: 'desk', input: 'Refund order 7', model });
 * expect(report.repeatedEffects).toEqual([]);
 */
export async function crashTest(
  source: AppSource,
  options: CrashTestOptions,
): Promise<CrashReport> {
  checkOptions(options, crashTestOptionNames, 'crashTest()');
  const opened = await openApp(source);
  const stopWatching = watchNetwork();
  const settings = { ...options, app: () => openApp(source) };
  try {
    return await testCrashes(opened.app, options, (turn, killAt) =>
      runOnce(turn, settings, killAt),
    );
  } finally {
    stopWatching();
    await opened.close();
  }
}

/** Compares runs with a crash at each point with a run without one. */
export async function testCrashes(
  app: App,
  options: CrashTestOptions,
  run: RunTurn,
): Promise<CrashReport> {
  const { input, sessions, signal, ignore = [], onProgress, timeout = defaultTimeout } = options;
  if ((input === undefined) === (sessions === undefined)) {
    throw invalid('crashTest() needs either an `input` or recorded `sessions`.');
  }
  const agent = pickAgent(app, options.agent);
  const skipped: { turn: string; reason: string }[] = [];
  const turns: TestedTurn[] = [];
  let done = 0;
  let of = 0;
  for await (const turn of turnsOf(app, agent, options, skipped)) {
    signal?.throwIfAborted();
    const clean = await run(turn);
    checkClean(turn, clean, timeout);
    turn.answers.endFirstRun();
    const unstable = different(clean, await run(turn), ignore);
    of += clean.points.length;
    const known = [...ignore, ...unstable.map(({ path }) => path)];
    const crashes: TestedTurn['crashes'][number][] = [];
    for (const [killAt, at] of clean.points.entries()) {
      signal?.throwIfAborted();
      const crash = await run(turn, killAt);
      onProgress?.({ done: ++done, of });
      // A turn that takes other ways each time may not come to the point.
      if (!crash.hasCrashed) continue;
      const changed = different(clean, crash, known);
      crashes.push({ at: crash.points[killAt] ?? at, run: crash, differences: changed });
    }
    turns.push({ title: turn.title, clean, unstable, crashes });
  }
  return toCrashReport(agent.name, turns, skipped);
}

/** Opens the app of a process. An app that was given stays open. */
async function openApp(source: AppSource): Promise<{ readonly app: App; close(): Promise<void> }> {
  if (typeof source !== 'function') return { app: source, close: async () => {} };
  const app = await source();
  // Its own store may have runs to take over.
  app.engine.stop();
  return { app, close: () => app.close({ grace: 0 }) };
}

function pickAgent(app: App, name: string | undefined): Agent {
  const agents = app.agents();
  const [only] = agents;
  if (name === undefined && agents.length !== 1) {
    throw invalid(
      `Name the \`agent\` of crashTest(): ${agents.map((each) => each.name).join(', ') || 'the app has none'}.`,
    );
  }
  const agent = name === undefined && only ? only : app.agent(name ?? '');
  if (internalsOf(agent).spec.store !== undefined) return agent;
  throw failedPrecondition(
    `Agent "${agent.name}" has no store, so a crash loses its turn. Give the app a store, such as memoryStore(), to test it.`,
  );
}

/** The turns to test: the one with the input, or those of recorded sessions. */
async function* turnsOf(
  app: App,
  { name: agent }: Agent,
  { input, sessions, model, tools = 'recorded' }: CrashTestOptions,
  skipped: { turn: string; reason: string }[],
): AsyncGenerator<TurnCase> {
  if (input !== undefined) {
    const title = shorten(typeof input === 'string' ? input : JSON.stringify(input));
    yield { agent, title, input, model, answers: new ModelAnswers() };
  }
  if (sessions === undefined) return;
  for await (const { name, read } of findSessions(app, sessions)) {
    const document = await read();
    if (document?.session?.agent !== agent) {
      const reason =
        document === undefined ? 'No such session.' : `It is not a session of agent "${agent}".`;
      skipped.push({ turn: name, reason });
      continue;
    }
    const { initialMessages } = internalsOf(app.agent(agent)).spec;
    const session = recordedSession(document, { initialMessages: initialMessages ?? [] });
    for (const { sessionId, turnIndex = 0, reason } of session.skipped)
      skipped.push({ turn: `${sessionId}, turn ${turnIndex + 1}`, reason });
    for (const turn of session.turns) {
      const { requestId: _, detach: __, ...asked } = turn.input;
      yield {
        agent,
        title: `${turn.sessionId}, turn ${turn.turnIndex + 1}`,
        input: asked as TurnCase['input'],
        model: model ?? scriptedModelFrom(session),
        answers: new ModelAnswers(),
        recorded: { turn, document, tools },
      };
    }
  }
}

/** Refuses a run that the others cannot be compared with. */
function checkClean(
  { title, recorded }: TurnCase,
  { outcome, points }: RunResult,
  timeout: number,
): void {
  if (outcome === undefined) {
    throw new WaymarkError(
      'DEADLINE_EXCEEDED',
      `The turn "${title}" did not end within ${timeout} ms without a crash. Give the agent a model that ends, or pass a longer \`timeout\`.`,
    );
  }
  const { error } = outcome;
  if (error !== undefined && recorded?.turn.error === undefined) {
    throw failedPrecondition(
      `The turn "${title}" fails without a crash: ${error} A crash test compares with a turn that succeeds, so fix this first.`,
    );
  }
  if (points.length <= maxPoints) return;
  throw new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `The turn "${title}" has ${points.length} crash points, and a crash test takes at most ${maxPoints}. Use a shorter turn.`,
  );
}

function different(
  clean: RunResult,
  { outcome }: RunResult,
  ignore: readonly string[],
): readonly Difference[] {
  if (outcome === undefined) return [];
  return differences(clean.outcome?.value, outcome.value).filter(
    ({ path }) => !ignore.some((each) => path === each || path.startsWith(`${each}/`)),
  );
}
