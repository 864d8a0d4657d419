import { type ReactNode, useState } from 'react';
import type { ReplayReport } from '../../../src/replay/report.ts';
import type { CrashReport } from '../../../src/testing/crash-test/crash-report.ts';
import { duration, plural } from '../lib/format.ts';
import { isRecord } from '../lib/json.ts';
import { costText } from '../lib/usage.ts';
import { PageHeader } from '../shell/page-header.tsx';
import { Boundary } from '../ui/boundary.tsx';
import { Icon } from '../ui/icon.tsx';
import { TableFrame } from '../ui/table-frame.tsx';
import { CrashReportView } from './crash-report-view.tsx';
import { kindNames, ReportTurn } from './report-turn.tsx';

/** A report that was read from a file; `fault` says why there is none. */
interface Opened {
  readonly name: string;
  readonly report?: ReplayReport;
  readonly crashes?: CrashReport;
  readonly fault?: string;
}

/** The report of a replay or a crash test, from a JSON file that stays in the browser. */
export function ReportView(): ReactNode {
  const [opened, setOpened] = useState<Opened>();
  const open = async (file: File | undefined): Promise<void> => {
    if (file) setOpened(await readReport(file));
  };
  return (
    <main
      className="runs-view wide"
      aria-label="Reports"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        void open(event.dataTransfer.files[0]);
      }}
    >
      <PageHeader title="Reports">
        Write one with <code>waymark replay … --report json --out report.json</code> or{' '}
        <code>waymark crash-test … --json &gt; report.json</code>, then choose the file or drop it
        here. It is not uploaded.
      </PageHeader>
      <label className="button report-file">
        Open a report
        <input
          type="file"
          accept=".json,application/json"
          className="visually-hidden"
          onChange={({ target }) => void open(target.files?.[0])}
        />
      </label>
      {opened?.fault !== undefined && (
        <p className="turn-fault" role="alert">
          {opened.name}: {opened.fault}
        </p>
      )}
      {opened?.report && (
        <Boundary what="report">
          <Report report={opened.report} name={opened.name} />
        </Boundary>
      )}
      {opened?.crashes && (
        <Boundary what="report">
          <CrashReportView report={opened.crashes} name={opened.name} />
        </Boundary>
      )}
    </main>
  );
}

async function readReport(file: File): Promise<Opened> {
  const { name } = file;
  try {
    const report: unknown = JSON.parse(await file.text());
    const hasLists = (...keys: readonly string[]): boolean =>
      isRecord(report) && keys.every((key) => Array.isArray(report[key]));
    if (hasLists('turns', 'skipped')) return { name, report: report as ReplayReport };
    if (hasLists('points', 'repeatedEffects', 'lostState', 'skipped'))
      return { name, crashes: report as CrashReport };
  } catch {
    // Reported below.
  }
  return { name, fault: 'This is not the JSON report of a replay or a crash test.' };
}

function Report({
  report,
  name,
}: {
  readonly report: ReplayReport;
  readonly name: string;
}): ReactNode {
  const { turns, skipped, divergent, stopped } = report;
  const [kind, setKind] = useState(divergent > 0 ? '*' : '');
  const [query, setQuery] = useState('');
  const words = query.trim().toLowerCase();
  const shown = turns.filter(
    (turn) =>
      (kind === '' || turn.divergences.some((each) => kind === '*' || each.kind === kind)) &&
      JSON.stringify(turn).toLowerCase().includes(words),
  );
  return (
    <>
      <p>
        <b dir="auto">{name}</b>:{' '}
        {divergent === 0
          ? 'No turn differs from its recording.'
          : `${divergent} of ${turns.length} turns differ from their recording.`}
        {skipped.length > 0 && ` ${skipped.length} skipped.`}
        {stopped && ' The budget was used up before all turns were replayed.'}
      </p>
      <Totals report={report} />
      <div className="turn-filters">
        <label className="search">
          <Icon name="search" size={14} />
          <input
            type="search"
            value={query}
            onChange={({ target }) => setQuery(target.value)}
            placeholder="Search the turns"
            aria-label="Search the turns"
          />
        </label>
        <select
          value={kind}
          onChange={({ target }) => setKind(target.value)}
          aria-label="Differences"
        >
          <option value="">All turns</option>
          <option value="*">Turns that differ</option>
          {Object.entries(kindNames).map(([key, text]) => (
            <option key={key} value={key}>
              {text}
            </option>
          ))}
        </select>
        <output className="quiet">{plural(shown.length, 'turn')}</output>
      </div>
      {shown.map((turn) => (
        <ReportTurn key={`${turn.sessionId} ${turn.snapshotId}`} turn={turn} />
      ))}
      {skipped.length > 0 && (
        <section>
          <h2 className="section-title">Skipped</h2>
          <ul>
            {skipped.map(({ sessionId, snapshotId, turnIndex, reason }) => (
              <li key={`${sessionId} ${snapshotId}`} dir="auto">
                {sessionId}
                {turnIndex !== undefined && `, turn ${turnIndex + 1}`}: {reason}
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

function Totals({ report: { recorded, replayed, scores } }: { readonly report: ReplayReport }) {
  const rows = [
    ['Tokens', recorded.tokens.toLocaleString(), replayed.tokens.toLocaleString()],
    ['Cost', costText(recorded) || '–', costText(replayed) || '–'],
    ['Time', duration(recorded.time), duration(replayed.time)],
    ...Object.entries(scores).map(([name, score]) => [name, '', score.toFixed(2)]),
  ];
  return (
    <TableFrame label="Totals">
      <table className="figures report-totals">
        <thead>
          <tr>
            <td />
            <th scope="col">Recorded</th>
            <th scope="col">Replayed</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([name, ...values]) => (
            <tr key={name}>
              <th scope="row">{name}</th>
              <td>{values[0]}</td>
              <td>{values[1]}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </TableFrame>
  );
}
