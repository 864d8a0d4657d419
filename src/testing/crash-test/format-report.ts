import type { CrashReport } from './crash-report.ts';

/** The report of a crash test as text: a table of its crash points, and what to repair. */
export function formatCrashReport({
  agent,
  points,
  repeatedEffects,
  lostState,
  skipped,
  ok,
}: CrashReport): string {
  const several = new Set(points.map(({ turn }) => turn)).size > 1;
  const rows = points.map(({ turn, at, ranAgain, lost, ended, error }) => [
    ...(several ? [turn] : []),
    at,
    ranAgain.join(', ') || '–',
    lost.join(', ') || '–',
    error === undefined ? ended : `${ended}: ${error}`,
  ]);
  const head = [...(several ? ['turn'] : []), 'crash', 'ran again', 'lost', 'ended'];
  const findings = [
    ...repeatedEffects.map(
      ({ effect, where, expected, actual, points: at, advice }) =>
        `✗ Repeated effect (${where}): ${effect} happened ${times(actual)} instead of ${times(expected)}.\n  After a crash ${listed(at)}.\n  ${advice}`,
    ),
    ...lostState.map(
      ({ path, expected, actual, points: at, advice }) =>
        `✗ ${path} is ${shown(actual)} instead of ${shown(expected)}.\n  ${at.length > 0 ? `After a crash ${listed(at)}.` : 'Without a crash.'}\n  ${advice}`,
    ),
    ...skipped.map(({ turn, reason }) => `Skipped ${turn}: ${reason}`),
  ];
  const summary = ok
    ? `✓ Agent "${agent}" survives ${points.length} crashes.`
    : `✗ Agent "${agent}": ${count(points.length, 'crash point')}, ${count(repeatedEffects.length, 'repeated effect')}, ${count(lostState.length, 'changed value')}, ${count(points.filter(({ ended }) => ended === 'failed' || ended === 'stuck').length, 'failed turn')}.`;
  return [table([head, ...rows]), ...findings, summary].join('\n\n');
}

function table(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, at) =>
    Math.max(...rows.map((row) => row[at]?.length ?? 0)),
  );
  return rows
    .map((row) =>
      row
        .map((cell, at) => cell.padEnd(widths[at] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function count(amount: number, name: string): string {
  return `${amount} ${name}${amount === 1 ? '' : 's'}`;
}

function times(amount: number): string {
  return amount === 1 ? 'once' : `${amount} times`;
}

function listed(points: readonly string[]): string {
  const more = points.length - 3;
  return points.slice(0, 3).join('; ') + (more > 0 ? ` and at ${count(more, 'more point')}` : '');
}

function shown(value: unknown): string {
  const text = value === undefined ? 'missing' : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
