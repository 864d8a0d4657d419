import { type ReactNode, useEffect, useMemo } from 'react';
import { flushSync } from 'react-dom';
import { useAgentValue } from '../../../src/react/index.ts';
import type { Graph } from '../timeline/graph.ts';
import { useGraph } from '../timeline/timeline.tsx';
import { type Step, walk } from '../timeline/walk.ts';
import { toast } from '../ui/toasts.tsx';
import { commandNames, type PageCommand, sessionCommands } from './command-list.ts';
import { isWriting } from './is-writing.ts';
import { closeSheet, showPanel, togglePanel } from './panels.ts';
import { useWorkbench } from './workbench.tsx';

const steps: Readonly<Record<string, Step>> = { j: 'down', k: 'up', h: 'left', l: 'right' };

/** The commands of the session that is shown: by keys anywhere but where one writes, and for the palette. */
export function KeyCommands(): ReactNode {
  const { store, commands, place } = useWorkbench();
  const graph = useGraph();
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const isRunning = useAgentValue(
    store,
    (view) => view.phase !== 'ready' && view.phase !== 'loading',
  );
  const list = useCommandList(graph, headId);

  useEffect(() => {
    sessionCommands.set(list);
    return () => sessionCommands.set([]);
  }, [list]);

  useEffect(() => {
    const selectedId = place.snapshot ?? headId;
    const isPast = place.snapshot !== undefined && place.snapshot !== headId;
    const leave = (): void => {
      if (closeSheet()) return;
      if (place.base !== undefined) commands.compare(undefined, place.snapshot);
      else if (isPast) commands.look(undefined);
      else if (isRunning) void store.actions.stop();
    };
    const onKeyDown = (event: KeyboardEvent): void => {
      if (document.querySelector('dialog[open]') || event.defaultPrevented) return;
      if (event.key === 'Escape') leave();
      if (isWriting(event.target) || event.metaKey || event.ctrlKey || event.altKey) return;
      const step = steps[event.key];
      const next = step && walk(graph, selectedId, step);
      if (next) commands.look(next.snapshot.snapshotId);
      const command = list.find(({ key }) => key === event.key);
      if (step || command) event.preventDefault();
      if (command) runOrExplain(command);
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, [store, commands, place, graph, headId, isRunning, list]);
  return null;
}

function useCommandList(graph: Graph, headId: string | undefined): readonly PageCommand[] {
  const { commands, place, store } = useWorkbench();
  const viewed = useAgentValue(store, (view) => view.past);
  return useMemo(() => {
    const selectedId = place.snapshot ?? headId;
    // A snapshot that a link leads to may be before those that are loaded.
    const selected =
      graph.rows[graph.rowOf.get(selectedId ?? '') ?? -1]?.snapshot ??
      (viewed?.snapshotId === selectedId ? viewed : undefined);
    const past = place.snapshot === headId ? undefined : place.snapshot && selected;
    const { status } = selected ?? {};
    const needsPast = past ? undefined : 'an older snapshot';
    const isComparing = place.base !== undefined;
    return [
      {
        ...commandNames.restore,
        needs: needsPast,
        run: () => past && void commands.restore(past.snapshotId),
      },
      {
        ...commandNames.fork,
        needs: status === 'succeeded' ? undefined : 'a snapshot of a turn that succeeded',
        run: () => selected && void commands.fork(selected.snapshotId),
      },
      {
        ...commandNames.compare,
        ...(isComparing && { name: 'End the comparison' }),
        needs: isComparing ? undefined : needsPast,
        run() {
          if (isComparing) commands.compare(undefined, place.snapshot);
          else if (past) commands.compare(past.snapshotId);
        },
      },
      {
        ...commandNames.label,
        needs: selected && status !== 'pending' ? undefined : 'a snapshot of a turn that has ended',
        run: () => selected && commands.label(selected),
      },
      { name: 'New session', run: () => commands.openSession(undefined) },
      { ...commandNames.search, run: focusSearch },
      { name: 'Show or hide the sessions', run: () => togglePanel('sessions') },
      { name: 'Show or hide the timeline', run: () => togglePanel('timeline') },
      { name: 'Show or hide the inspector', run: () => togglePanel('inspector') },
    ];
  }, [commands, place, graph, headId, viewed]);
}

function focusSearch(): void {
  // Focus at once: the next keys belong to the search, and a frame later they would be commands.
  flushSync(() => showPanel('sessions'));
  document.querySelector<HTMLElement>('[data-search]')?.focus();
}

function runOrExplain({ name, needs, run }: PageCommand): void {
  if (needs === undefined) run();
  else toast({ text: `${name}: select ${needs} first; use j and k to move in the timeline.` });
}
