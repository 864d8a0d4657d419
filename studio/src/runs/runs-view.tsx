import { type ReactNode, useState } from 'react';
import type { RunInfo } from '../../../src/client/index.ts';
import { duration, plural, shortId } from '../lib/format.ts';
import { brief } from '../lib/json.ts';
import { keyNames } from '../lib/keys.ts';
import { type EndedRun, pulse } from '../lib/pulse.ts';
import { type TurnFilter, useRecordedTurns } from '../lib/recorded-turns.ts';
import { useSource } from '../lib/use-source.ts';
import { Markdown } from '../markdown/markdown.tsx';
import { PageHeader } from '../shell/page-header.tsx';
import { Empty } from '../ui/empty.tsx';
import { Icon } from '../ui/icon.tsx';
import { MarkIcon, type MarkKind } from '../ui/mark.tsx';
import { Time } from '../ui/time.tsx';
import { DeadRuns } from './dead-runs.tsx';
import { EndedRuns } from './ended-runs.tsx';
import { abortRun } from './run-actions.ts';
import { RunProgress } from './run-progress.tsx';
import { SessionLink } from './session-link.tsx';
import { useWatch } from './use-watch.ts';

const everything: TurnFilter = {};

/** All runs of all agents: what is under way, what was given up, and what has ended. */
export function RunsView({ agents }: { readonly agents: readonly string[] }): ReactNode {
  const { runs, ended } = useSource(pulse);
  const [watched, setWatched] = useState<string>();
  const turns = useRecordedTurns(everything);
  const askedIn = (run: RunInfo): string | undefined =>
    turns === 'none'
      ? undefined
      : turns?.items.find(
          ({ sessionId, agent, endedAt }) =>
            sessionId === run.sessionId && agent === run.agent && endedAt === undefined,
        )?.asked;
  return (
    <main className="runs-view" aria-label="Runs">
      <PageHeader title="Runs">
        Background work. If the process of a run dies, another one continues the run from its last
        checkpoint.
      </PageHeader>
      <section aria-label="Active">
        <h2 className="section-title">Active</h2>
        {runs.length === 0 ? (
          <Empty title="Nothing is running.">
            <p>
              Send a message in the background: <kbd>{keyNames.modShiftEnter}</kbd> in the message
              field, or the button beside Send.
            </p>
          </Empty>
        ) : (
          <ul className="run-cards">
            {runs.map((run) => (
              <RunCard
                key={run.snapshotId}
                run={run}
                asked={askedIn(run)}
                isWatched={watched === run.snapshotId}
                onWatch={() => setWatched(watched === run.snapshotId ? undefined : run.snapshotId)}
              />
            ))}
          </ul>
        )}
      </section>
      <DeadRuns agents={agents} />
      {turns === 'none' && ended.length > 0 && (
        <section aria-label="Ended">
          <h2 className="section-title">Ended</h2>
          <ul className="run-cards">
            {ended.map((each) => (
              <EndedCard key={each.run.snapshotId} ended={each} />
            ))}
          </ul>
        </section>
      )}
      <EndedRuns agents={agents} />
    </main>
  );
}

function RunCard({
  run,
  asked,
  isWatched,
  onWatch,
}: {
  readonly run: RunInfo;
  readonly asked: string | undefined;
  readonly isWatched: boolean;
  readonly onWatch: () => void;
}): ReactNode {
  const { agent, attempt, expired, status } = run;
  return (
    <li className="run-card">
      <div className="run-head">
        <MarkIcon kind={expired ? 'expired' : 'pending'} />
        <SessionLink run={run} />
        <RunProgress run={run} />
        <span className="run-buttons">
          <button type="button" className="button" onClick={onWatch} aria-expanded={isWatched}>
            <Icon name="watch" size={14} /> Watch
          </button>
          <button
            type="button"
            className="button"
            onClick={() => void abortRun(run)}
            aria-label={`Abort ${agent}`}
          >
            <Icon name="stop" size={14} /> Abort
          </button>
        </span>
      </div>
      {asked !== undefined && (
        <p className="run-note" dir="auto">
          {asked}
        </p>
      )}
      <RunFacts run={run} />
      {attempt > 1 && (
        <p className="run-note">
          <Icon name="warning" size={14} /> Taken over {plural(attempt - 1, 'time')}: an earlier
          process stopped.
        </p>
      )}
      {isWatched && status !== undefined && <p className="run-status">{brief(status, 160)}</p>}
      {isWatched && <WatchedText run={run} />}
    </li>
  );
}

function RunFacts({ run }: { readonly run: RunInfo }): ReactNode {
  const { sessionId, mode, attempt, createdAt, inputs, inputsDone } = run;
  return (
    <dl className="facts">
      <div>
        <dt>Session</dt>
        <dd className="mono">{shortId(sessionId)}</dd>
      </div>
      <div>
        <dt>Kind</dt>
        <dd>{mode === 'detached' ? 'background' : 'turn'}</dd>
      </div>
      <div>
        <dt>Attempt</dt>
        <dd>{attempt}</dd>
      </div>
      <div>
        <dt>Inputs</dt>
        <dd>
          {inputsDone} of {inputs}
        </dd>
      </div>
      <div>
        <dt>Running for</dt>
        <dd>{duration(Date.now() - Date.parse(createdAt))}</dd>
      </div>
    </dl>
  );
}

function WatchedText({ run }: { readonly run: RunInfo }): ReactNode {
  const { text, fault } = useWatch(run);
  return (
    <section className="watched" aria-label="Output so far">
      {text === '' ? <p className="quiet">No output yet.</p> : <Markdown text={text} />}
      {fault !== undefined && <p className="fault-text">{fault}</p>}
    </section>
  );
}

const endMarks: Readonly<Record<string, MarkKind>> = {
  succeeded: 'done',
  failed: 'failed',
  aborted: 'aborted',
  expired: 'expired',
};

function EndedCard({ ended: { run, status, endedAt } }: { readonly ended: EndedRun }): ReactNode {
  const took = endedAt - Date.parse(run.createdAt);
  return (
    <li className="run-card ended">
      <div className="run-head">
        <MarkIcon kind={endMarks[status ?? ''] ?? 'orphaned'} />
        <SessionLink run={run} />
        <span className="run-said">
          {status ?? 'gone'} after {duration(took)}
        </span>
        <Time iso={new Date(endedAt).toISOString()} form="clock" />
      </div>
    </li>
  );
}
