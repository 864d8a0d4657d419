import { type ReactNode, useEffect } from 'react';
import { flushSync } from 'react-dom';
import { useAgentValue } from '../../../src/react/index.ts';
import { useGraph } from '../timeline/timeline.tsx';
import { type Step, walk } from '../timeline/walk.ts';
import { toast } from '../ui/toasts.tsx';
import { openDialog } from './dialogs.ts';
import { closeSheet, showPanel } from './panels.ts';
import { useWorkbench } from './workbench.tsx';

const steps: Readonly<Record<string, Step>> = { j: 'down', k: 'up', h: 'left', l: 'right' };

/** The keys that work anywhere on the page, but where one writes. */
export function KeyCommands(): ReactNode {
  const { store, commands, place } = useWorkbench();
  const graph = useGraph();
  const headId = useAgentValue(store, (view) => view.snapshotId);
  const isRunning = useAgentValue(
    store,
    (view) => view.phase !== 'ready' && view.phase !== 'loading',
  );

  useEffect(() => {
    const selectedId = place.snapshot ?? headId;
    const selected = graph.rows[graph.rowOf.get(selectedId ?? '') ?? -1]?.snapshot;
    const isPast = place.snapshot !== undefined && place.snapshot !== headId;

    const leave = (): void => {
      if (closeSheet()) return;
      if (place.base !== undefined) commands.compare(undefined, place.snapshot);
      else if (isPast) commands.look(undefined);
      else if (isRunning) void store.actions.stop();
    };
    const keys: Readonly<Record<string, () => void>> = {
      g: () => (selected && isPast ? void commands.goBack(selected.snapshotId) : say('go back')),
      b: () => selected && void commands.branch(selected.snapshotId),
      c: () => {
        if (place.base !== undefined) commands.compare(undefined, place.snapshot);
        else if (selected && isPast) commands.compare(selected.snapshotId);
        else say('compare');
      },
      f: () => selected && commands.label(selected),
      '/': () => {
        // Focus at once: the next keys belong to the search, and a frame later they would be commands.
        flushSync(() => showPanel('sessions'));
        document.querySelector<HTMLElement>('[data-search]')?.focus();
      },
      '?': () => openDialog.set({ type: 'help' }),
    };

    const onKeyDown = (event: KeyboardEvent): void => {
      if (document.querySelector('dialog[open]') || event.defaultPrevented) return;
      if (event.key === 'Escape') leave();
      if (isWriting(event.target) || event.metaKey || event.ctrlKey || event.altKey) return;
      const step = steps[event.key];
      const next = step && walk(graph, selectedId, step);
      if (next) commands.look(next.snapshot.snapshotId);
      const command = keys[event.key];
      if (step || command) event.preventDefault();
      command?.();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, [store, commands, place, graph, headId, isRunning]);
  return null;
}

function say(what: string): void {
  toast({ text: `To ${what}, choose an older snapshot first: j and k go through the timeline.` });
}

function isWriting(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && target.matches('input, textarea, select, [contenteditable]')
  );
}
