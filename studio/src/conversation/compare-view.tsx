import { type ReactNode, useMemo } from 'react';
import type { FileDiff, Message, Snapshot } from '../../../src/client/index.ts';
import { jsonEqual } from '../../../src/core/json/json.ts';
import { useAgentValue } from '../../../src/react/index.ts';
import { useFileDiffs } from '../files/use-files.ts';
import { StateChanges } from '../inspector/state-changes.tsx';
import { plural } from '../lib/format.ts';

import { toolTimes } from '../lib/span-tree.ts';
import { toTurns } from '../lib/turns.ts';
import { useSnapshot } from '../lib/use-snapshot.ts';
import { useSource } from '../lib/use-source.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { Icon } from '../ui/icon.tsx';
import { MarkIcon, markOf } from '../ui/mark.tsx';
import { MessageView } from './message-view.tsx';

/** Two snapshots side by side: where their ways part, what each said since, and how their states differ. */
export function CompareView({ base }: { readonly base: string }): ReactNode {
  const { agent, store, place, commands } = useWorkbench();
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const otherId = place.snapshot ?? headId;
  const left = useSnapshot(agent, base);
  const right = useSnapshot(agent, otherId);
  const workspace = useFileDiffs(agent, base, otherId);
  return (
    <section className="scroller compare" aria-label="Comparison">
      <header className="compare-header">
        <h2>Comparison</h2>
        {otherId !== undefined && (
          <button type="button" className="button" onClick={() => commands.compare(otherId, base)}>
            <Icon name="compare" size={14} /> Swap
          </button>
        )}
        <button
          type="button"
          className="button"
          onClick={() => commands.compare(undefined, place.snapshot)}
        >
          <Icon name="close" size={14} /> Done
        </button>
      </header>
      {left && right ? (
        <Compared left={left} right={right} workspace={workspace} />
      ) : (
        <p className="quiet loading">Loading both snapshots…</p>
      )}
    </section>
  );
}

function Compared({
  left,
  right,
  workspace,
}: {
  readonly left: Snapshot;
  readonly right: Snapshot;
  readonly workspace: readonly FileDiff[] | undefined;
}): ReactNode {
  const { common, before, after } = useMemo(
    () => partWays(left.state?.messages ?? [], right.state?.messages ?? []),
    [left, right],
  );
  return (
    <>
      <p className="compare-common quiet">
        {common === 0
          ? 'They have nothing in common.'
          : `The same up to ${plural(common, 'message')}, then:`}
      </p>
      <div className="compare-columns">
        <Column snapshot={left} messages={before} from={common} />
        <Column snapshot={right} messages={after} from={common} />
      </div>
      <h3 className="section-title">Differences in state and files</h3>
      <StateChanges
        before={left.state}
        after={right.state}
        workspace={workspace}
        withMessages={false}
      />
    </>
  );
}

function Column({
  snapshot,
  messages,
  from,
}: {
  readonly snapshot: Snapshot;
  readonly messages: readonly Message[];
  readonly from: number;
}): ReactNode {
  const { info, store, titles, spans } = useWorkbench();
  const times = useMemo(() => toolTimes(spans ?? []), [spans]);
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const title = useSource(titles).get(snapshot.snapshotId);
  const isHead = snapshot.snapshotId === headId;
  const turns = useMemo(() => toTurns(messages), [messages]);
  return (
    <section
      className="compare-column"
      aria-label={isHead ? 'Now' : `Turn ${snapshot.turnIndex + 1}`}
    >
      <header>
        <MarkIcon kind={markOf(snapshot, isHead)} />
        <strong>{isHead ? 'Now' : `Turn ${snapshot.turnIndex + 1}`}</strong>
        <span className="quiet" dir="auto">
          {snapshot.label ?? title}
        </span>
      </header>
      {messages.length === 0 && <p className="quiet">No further messages.</p>}
      {turns.flatMap((turn) =>
        turn.messages.map((placed) => (
          <MessageView
            key={placed.index + from}
            placed={placed}
            isLive={false}
            agentName={info.name}
            toolTimes={times}
          />
        )),
      )}
    </section>
  );
}

/** The common start of two conversations, and the rest of each. */
function partWays(
  a: readonly Message[],
  b: readonly Message[],
): {
  readonly common: number;
  readonly before: readonly Message[];
  readonly after: readonly Message[];
} {
  let common = 0;
  while (common < Math.min(a.length, b.length) && isSameMessage(a[common], b[common])) common++;
  return { common, before: a.slice(common), after: b.slice(common) };
}

// Two sessions with a common past differ only in the names of their snapshots.
function isSameMessage(a: Message | undefined, b: Message | undefined): boolean {
  return a?.role === b?.role && jsonEqual(a?.content, b?.content);
}
