import { createSource } from '../lib/observable.ts';

/** The parts beside the conversation. */
export type Panel = 'sessions' | 'timeline' | 'inspector';

/** From which width on each stands beside the conversation; below it comes as a sheet over it. */
const columns: Readonly<Record<Panel, string>> = {
  sessions: '(min-width: 904px)',
  timeline: '(min-width: 640px)',
  inspector: '(min-width: 1240px)',
};

/** Which sheet is open, and which columns were put away. */
export interface Panels {
  readonly sheet: Panel | undefined;
  readonly hidden: readonly Panel[];
}

export const panels = createSource<Panels>({ sheet: undefined, hidden: [] });

/** Shows a panel or puts it away, whichever form it has at this width. */
export function togglePanel(panel: Panel): void {
  const { sheet, hidden } = panels.get();
  if (!isColumn(panel)) {
    panels.set({ sheet: sheet === panel ? undefined : panel, hidden });
    return;
  }
  const others = hidden.filter((each) => each !== panel);
  panels.set({
    sheet: undefined,
    hidden: others.length < hidden.length ? others : [...hidden, panel],
  });
}

/** Makes sure that a panel is to be seen. */
export function showPanel(panel: Panel): void {
  const { hidden } = panels.get();
  panels.set({
    sheet: isColumn(panel) ? undefined : panel,
    hidden: hidden.filter((each) => each !== panel),
  });
}

/** Closes the open sheet; `false` when there was none. */
export function closeSheet(): boolean {
  const { sheet, hidden } = panels.get();
  if (sheet !== undefined) panels.set({ sheet: undefined, hidden });
  return sheet !== undefined;
}

function isColumn(panel: Panel): boolean {
  return matchMedia(columns[panel]).matches;
}
