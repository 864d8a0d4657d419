import {
  type KeyboardEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
} from 'react';
import { useAgentValue } from '../../../src/react/index.ts';
import { plural } from '../lib/format.ts';
import { openTurn, titleOf } from '../lib/turns.ts';
import { useSource } from '../lib/use-source.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { Empty } from '../ui/empty.tsx';
import { type Graph, toGraph } from './graph.ts';
import { GraphLines, type Measures } from './lines.tsx';
import { TimelineRow } from './row.tsx';
import { useWindow } from './use-window.ts';
import { type Step, walk } from './walk.ts';

const rowHeight = 30;
const inset = 15;
/** The graph takes at most so much of the panel; with many branches its lanes come closer, and the rest is cut off. */
const widest = 130;

/** The whole tree of a session, branches side by side. */
export function Timeline(): ReactNode {
  const { info, store } = useWorkbench();
  const graph = useGraph();
  const hasEarlier = useAgentValue(store, (view) => view.hasEarlierSnapshots);
  return (
    <>
      <header className="panel-header">
        <h2>Timeline</h2>
        {graph.rows.length > 0 && (
          <span className="quiet">
            {hasEarlier && 'last '}
            {graph.branches > 1
              ? `${graph.rows.length.toLocaleString()} · ${graph.branches} branches`
              : plural(graph.rows.length, 'snapshot')}
          </span>
        )}
      </header>
      {hasEarlier && (
        <button
          type="button"
          className="text-button earlier"
          onClick={() => void store.actions.loadEarlierSnapshots()}
        >
          Show earlier snapshots
        </button>
      )}
      {graph.rows.length > 0 ? (
        <TimelineList graph={graph} />
      ) : (
        <Empty title={info.metadata.timeline ? 'No snapshots yet.' : 'No timeline.'}>
          <p>
            {info.metadata.timeline
              ? 'Every turn adds a snapshot here. Inspect, restore, fork and compare them.'
              : 'This agent’s store does not keep one.'}
          </p>
        </Empty>
      )}
    </>
  );
}

/** The graph of the present session, with the turn that runs. */
export function useGraph(): Graph {
  const { store, session } = useWorkbench();
  const isGone = session === 'gone';
  const snapshots = useAgentValue(store, (view) => view.timeline);
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const running = useAgentValue(store, (view) =>
    view.phase === 'ready' ? undefined : view.running,
  );
  const sessionId = useAgentValue(store, (view) => view.sessionId);
  return useMemo(() => {
    // The list of another session is shown until this one's has come.
    const own = isGone ? [] : snapshots.filter((each) => each.sessionId === sessionId);
    return toGraph(
      own,
      headId,
      running === undefined ? undefined : { snapshotId: running, parentId: headId },
    );
  }, [snapshots, headId, running, sessionId, isGone]);
}

function TimelineList({ graph }: { readonly graph: Graph }): ReactNode {
  const { commands, place, store } = useWorkbench();
  const scroller = useRef<HTMLDivElement>(null);
  const { rows, lanes } = graph;
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const { first, end, onScroll } = useWindow(scroller, rowHeight, rows.length);
  const titles = useTitles(graph, first, end);
  const selectedId = place.snapshot ?? headId;
  useEarlierRows(scroller, graph);
  useInView(scroller, graph.rowOf.get(selectedId ?? ''));

  const laneWidth = Math.max(6, Math.min(15, (widest - 2 * inset) / Math.max(1, lanes - 1)));
  const measures: Measures = { rowHeight, laneWidth, inset };
  const width = Math.min(widest, 2 * inset + (lanes - 1) * laneWidth);

  const select = useCallback(
    (snapshotId: string, isRange: boolean) => {
      if (isRange) commands.compare(selectedId, snapshotId);
      else commands.look(snapshotId);
    },
    [commands, selectedId],
  );
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = arrowSteps[event.key];
    const next = step && walk(graph, selectedId, step);
    if (!next) return;
    event.preventDefault();
    commands.look(next.snapshot.snapshotId);
  };
  return (
    <div
      ref={scroller}
      className="timeline"
      role="listbox"
      aria-label="Timeline"
      tabIndex={0}
      aria-activedescendant={selectedId === undefined ? undefined : `row-${selectedId}`}
      onScroll={(event) => {
        onScroll();
        const isAtTop = event.currentTarget.scrollTop < rowHeight;
        if (isAtTop && store.getView().hasEarlierSnapshots) {
          void store.actions.loadEarlierSnapshots();
        }
      }}
      onKeyDown={onKeyDown}
    >
      <div
        className="timeline-canvas"
        role="presentation"
        style={{ height: rows.length * rowHeight }}
      >
        {rows.slice(first, end).map((row) => (
          <TimelineRow
            key={row.snapshot.snapshotId}
            row={row}
            title={titles.get(row.snapshot.snapshotId)}
            top={row.row * rowHeight}
            indent={Math.min(width, 2 * measures.inset + row.reach * laneWidth)}
            total={rows.length}
            isSelected={row.snapshot.snapshotId === selectedId}
            isBase={row.snapshot.snapshotId === place.base}
            onSelect={select}
          />
        ))}
        <GraphLines graph={graph} first={first} end={end} width={width} measures={measures} />
      </div>
    </div>
  );
}

const arrowSteps: Readonly<Record<string, Step>> = {
  ArrowDown: 'down',
  ArrowUp: 'up',
  ArrowLeft: 'left',
  ArrowRight: 'right',
  Home: 'first',
  End: 'last',
};

/** When earlier rows are added on top, what is in view stays where it is. */
function useEarlierRows(scroller: { readonly current: HTMLElement | null }, graph: Graph): void {
  const top = useRef<string>(undefined);
  useLayoutEffect(() => {
    const added = graph.rowOf.get(top.current ?? '') ?? 0;
    top.current = graph.rows[0]?.snapshot.snapshotId;
    if (scroller.current && added > 0) scroller.current.scrollTop += added * rowHeight;
  }, [scroller, graph]);
}

/** Keeps the selected row in view when it changes; not while the user scrolls. */
function useInView(
  scroller: { readonly current: HTMLElement | null },
  row: number | undefined,
): void {
  useEffect(() => {
    const element = scroller.current;
    if (!element || row === undefined) return;
    const top = row * rowHeight;
    const { scrollTop, clientHeight } = element;
    if (top < scrollTop + rowHeight) element.scrollTop = top - 2 * rowHeight;
    else if (top + 2 * rowHeight > scrollTop + clientHeight) {
      element.scrollTop = top + 3 * rowHeight - clientHeight;
    }
  }, [scroller, row]);
}

/** The titles of the rows in view: of the conversation at hand at once, of other branches as they come. */
function useTitles(graph: Graph, first: number, end: number): ReadonlyMap<string, string> {
  const { titles, store } = useWorkbench();
  const messages = useAgentValue(store, (view) => view.transcript);
  const past = useAgentValue(store, (view) => view.past?.state?.messages);
  const running = useAgentValue(store, (view) => view.running);
  useEffect(() => {
    if (running === undefined) titles.learn(messages);
  }, [titles, messages, running]);
  useEffect(() => titles.learn(past ?? []), [titles, past]);
  useEffect(() => {
    const timer = setTimeout(() => {
      const inView = graph.rows.slice(first, end).map(({ snapshot }) => snapshot);
      titles.want(inView.filter(({ status }) => status !== 'pending'));
    }, 120);
    return () => clearTimeout(timer);
  }, [titles, graph, first, end]);
  const known = useSource(titles);
  return useMemo(() => {
    if (running === undefined) return known;
    const title = titleOf(openTurn(messages));
    return title ? new Map([...known, [running, title]]) : known;
  }, [known, running, messages]);
}
