import type { CrashPoint, CrashReport, LostState, RepeatedEffect } from './crash-report.ts';
import type { Difference } from './outcome.ts';
import type { Effect } from './probe.ts';
import type { RunResult } from './run-once.ts';

/** A run without a crash, what is known to differ between two of them, and the runs with a crash. */
export interface TestedTurn {
  readonly title: string;
  readonly clean: RunResult;
  readonly unstable: readonly Difference[];
  readonly crashes: readonly {
    readonly at: string;
    readonly run: RunResult;
    readonly differences: readonly Difference[];
  }[];
}

/** Reports tested turns of one agent. */
export function toCrashReport(
  agent: string,
  turns: readonly TestedTurn[],
  skipped: CrashReport['skipped'],
): CrashReport {
  const repeated = new Map<string, RepeatedEffect>();
  const lost = new Map<string, LostState>();
  const points: CrashPoint[] = [];
  for (const { title, clean, unstable, crashes } of turns) {
    for (const each of unstable)
      lost.set(`${title} ${each.path}`, { ...each, points: [], advice: advice.unstable });
    for (const { at, run, differences } of crashes) {
      for (const { effect, expected, actual } of repeatedIn(clean.effects, run.effects)) {
        const { name, where } = effect;
        const known = repeated.get(`${title} ${name} ${where}`);
        repeated.set(`${title} ${name} ${where}`, {
          effect: name,
          where,
          expected,
          actual: Math.max(actual, known?.actual ?? 0),
          points: [...(known?.points ?? []), at],
          advice: adviceFor(where),
        });
      }
      if (run.outcome?.error === undefined) {
        for (const each of differences) {
          const key = `${title} ${each.path}`;
          const known = lost.get(key) ?? { ...each, points: [], advice: advice.lost };
          lost.set(key, { ...known, points: [...known.points, at] });
        }
      }
      points.push(pointOf({ title, at, clean, run, differences }));
    }
  }
  const repeatedEffects = [...repeated.values()];
  const lostState = [...lost.values()];
  const ok =
    repeatedEffects.length + lostState.length === 0 &&
    points.every(({ ended }) => ended === 'same');
  return { kind: 'crash-test', agent, ok, points, repeatedEffects, lostState, skipped };
}

const advice = {
  tool: 'Pass the idempotencyKey of the tool context to the system that gets the effect. If the tool may run twice, declare it with metadata: { annotations: { readOnlyHint: true } } or idempotentHint.',
  step: 'Pass a key that is the same in each attempt to the system that gets the effect: a step whose process dies before its result is stored runs again.',
  outside:
    'Move it into a tool that passes its idempotencyKey on, or in a custom agent into session.step: code outside of both runs again from the start of the turn or the last checkpoint.',
  lost: 'Keep it in the state of the session (session.updateCustom) or in a database: a variable is lost with its process, and keeps what a dead attempt wrote.',
  unstable:
    'Two runs without a crash ended differently: the value is random, or comes from a variable or a fake that remembers the run before. Keep state in the session, reset fakes with `reset`, or list the path in `ignore`.',
};

function adviceFor(where: string): string {
  if (where.startsWith('tool ')) return advice.tool;
  return where.startsWith('step ') ? advice.step : advice.outside;
}

/** The effects that a run had more often than the clean one. */
function repeatedIn(clean: readonly Effect[], run: readonly Effect[]) {
  const before = countEffects(clean);
  return [...countEffects(run)].flatMap(([name, { effect, count: actual }]) => {
    const expected = before.get(name)?.count ?? 0;
    return actual > expected ? [{ effect, expected, actual }] : [];
  });
}

function countEffects(effects: readonly Effect[]) {
  const counts = new Map<string, { readonly effect: Effect; count: number }>();
  const keys = new Set<string>();
  for (const effect of effects) {
    const { name, key } = effect;
    if (key !== undefined && keys.has(key)) continue;
    if (key !== undefined) keys.add(key);
    const known = counts.get(name);
    if (known) known.count++;
    else counts.set(name, { effect, count: 1 });
  }
  return counts;
}

function pointOf({
  title,
  at,
  clean,
  run,
  differences,
}: {
  readonly title: string;
  readonly at: string;
  readonly clean: RunResult;
  readonly run: RunResult;
  readonly differences: readonly Difference[];
}): CrashPoint {
  const { outcome } = run;
  const missing = repeatedIn(run.effects, clean.effects).map(({ effect }) => effect.name);
  const error = outcome?.error;
  const isFailed = error !== undefined && differences.length > 0;
  const ended =
    outcome === undefined
      ? 'stuck'
      : isFailed
        ? 'failed'
        : differences.length > 0
          ? 'different'
          : 'same';
  return {
    turn: title,
    at,
    ranAgain: ranAgain(clean.begun, run.begun),
    lost: [
      ...(at === 'before store write claim' ? ['the request, which the client sends again'] : []),
      ...(isFailed ? [] : differences.map(({ path }) => path)),
      ...missing,
    ],
    ended,
    ...(isFailed && { error }),
  };
}

function ranAgain(clean: readonly string[], run: readonly string[]): string[] {
  const left = [...clean];
  return [
    ...new Set(
      run.filter((name) => {
        const at = left.indexOf(name);
        if (at >= 0) left.splice(at, 1);
        return at < 0;
      }),
    ),
  ];
}
