import { type ReactNode, useState } from 'react';
import type { CrashPoint, CrashReport } from '../../../src/testing/crash-test/crash-report.ts';
import { plural } from '../lib/format.ts';
import { TableFrame } from '../ui/table-frame.tsx';

const endings: Readonly<Record<CrashPoint['ended'], string>> = {
  same: 'as without a crash',
  different: 'differently',
  failed: 'failed',
  stuck: 'not at all',
};

/** The report of a crash test: what to repair, and a table of the crash points. */
export function CrashReportView({
  report,
  name,
}: {
  readonly report: CrashReport;
  readonly name: string;
}): ReactNode {
  const { agent, ok, points, repeatedEffects, lostState, skipped } = report;
  const [isShort, setIsShort] = useState(false);
  const repeating = new Set(repeatedEffects.flatMap((each) => each.points));
  const isFaulty = ({ at, ended }: CrashPoint): boolean => ended !== 'same' || repeating.has(at);
  const shown = isShort ? points.filter(isFaulty) : points;
  const isOne = new Set(points.map(({ turn }) => turn)).size <= 1;
  return (
    <>
      <p className="report-summary">
        <b dir="auto">{name}</b>: Agent <b dir="auto">{agent}</b>{' '}
        {ok
          ? `survives ${plural(points.length, 'crash', 'crashes')}.`
          : `does not survive every one of ${plural(points.length, 'crash', 'crashes')}.`}
      </p>
      {repeatedEffects.map(({ effect, where, expected, actual, advice, points: at }) => (
        <Finding key={`${effect} ${where}`} title="Repeated effect" points={at} advice={advice}>
          <code dir="auto">{effect}</code> ({where}) happened {times(actual)} instead of{' '}
          {times(expected)}.
        </Finding>
      ))}
      {lostState.map(({ path, expected, actual, advice, points: at }) => (
        <Finding key={path} title="Lost state" points={at} advice={advice}>
          <code dir="auto">{path}</code> is <code dir="auto">{valueText(actual)}</code> instead of{' '}
          <code dir="auto">{valueText(expected)}</code>.
        </Finding>
      ))}
      <div className="turn-filters">
        <label>
          <input
            type="checkbox"
            checked={isShort}
            onChange={({ target }) => setIsShort(target.checked)}
          />{' '}
          Only points with a mistake
        </label>
        <output className="quiet">{plural(shown.length, 'crash point')}</output>
      </div>
      <TableFrame label="Crash points">
        <table className="figures report-differences" aria-label="Crash points">
          <thead>
            <tr>
              {!isOne && <th scope="col">Turn</th>}
              <th scope="col">Crash</th>
              <th scope="col">Ran again</th>
              <th scope="col">Lost</th>
              <th scope="col">Ended</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((point) => (
              <tr key={`${point.turn} ${point.at}`}>
                {!isOne && <td dir="auto">{point.turn}</td>}
                <th scope="row">{point.at}</th>
                <td dir="auto">{point.ranAgain.join(', ') || '–'}</td>
                <td dir="auto">{point.lost.join(', ') || '–'}</td>
                <td dir="auto" className={isFaulty(point) ? 'turn-fault' : 'report-same'}>
                  {endings[point.ended]}
                  {repeating.has(point.at) && ', with a repeated effect'}
                  {point.error !== undefined && `: ${point.error}`}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </TableFrame>
      {skipped.length > 0 && (
        <section>
          <h2 className="section-title">Skipped</h2>
          <ul>
            {skipped.map(({ turn, reason }) => (
              <li key={turn} dir="auto">
                {turn}: {reason}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function Finding({
  title,
  points,
  advice,
  children,
}: {
  readonly title: string;
  readonly points: readonly string[];
  readonly advice: string;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <article className="report-turn">
      <h2 className="section-title">
        <span className="turn-fault">{title}</span>
      </h2>
      <p>{children}</p>
      <p className="quiet">
        {points.length === 0 ? 'Without a crash.' : `After a crash ${listed(points)}.`}
      </p>
      <p>{advice}</p>
    </article>
  );
}

function listed(points: readonly string[]): string {
  const more = points.length - 3;
  return points.slice(0, 3).join('; ') + (more > 0 ? ` and at ${plural(more, 'more point')}` : '');
}

function times(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

function valueText(value: unknown): string {
  const text = JSON.stringify(value) ?? 'missing';
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}
