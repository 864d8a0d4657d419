import { createSource } from '../lib/observable.ts';

/** The parts beside the conversation. */
export type Panel = 'sessions' | 'timeline' | 'inspector';

/** From which width on each stands beside the conversation; below it comes as a sheet over it. */
const columns: Readonly<Record<Panel, string>> = {
  sessions: '(min-width: 904px)',
  timeline: '(min-width: 640px)',
  inspector: '(min-width: 1240px)',
};

const key = 'waymark.panels';

/** Which sheet is open, which columns were put away, and how wide the others were made. */
export interface Panels {
  readonly sheet: Panel | undefined;
  readonly hidden: readonly Panel[];
  /** In pixels; absent: as wide as the screen suggests. */
  readonly widths: Readonly<Partial<Record<Panel, number>>>;
}

export const panels = createSource<Panels>({ sheet: undefined, ...readPanels() });

panels.subscribe(() => {
  const { hidden, widths } = panels.get();
  try {
    localStorage.setItem(key, JSON.stringify({ hidden, widths }));
  } catch {
    // Without storage the columns are as they were at the next visit.
  }
});

/** The narrowest and the widest column, in pixels. */
export const widthRange: { readonly min: number; readonly max: number } = { min: 160, max: 900 };

/** Makes a column this wide; `undefined`: as wide as the screen suggests. */
export function resizePanel(panel: Panel, width: number | undefined): void {
  const { [panel]: _, ...others } = panels.get().widths;
  const { min, max } = widthRange;
  const widths =
    width === undefined
      ? others
      : { ...others, [panel]: Math.round(Math.min(max, Math.max(min, width))) };
  panels.set({ ...panels.get(), widths });
}

/** Shows a panel or puts it away, whichever form it has at this width. */
export function togglePanel(panel: Panel): void {
  const { sheet, hidden } = panels.get();
  if (!isColumn(panel)) {
    panels.set({ ...panels.get(), sheet: sheet === panel ? undefined : panel });
    return;
  }
  const others = hidden.filter((each) => each !== panel);
  panels.set({
    ...panels.get(),
    sheet: undefined,
    hidden: others.length < hidden.length ? others : [...hidden, panel],
  });
}

/** Makes sure that a panel is to be seen. */
export function showPanel(panel: Panel): void {
  const { hidden } = panels.get();
  panels.set({
    ...panels.get(),
    sheet: isColumn(panel) ? undefined : panel,
    hidden: hidden.filter((each) => each !== panel),
  });
}

/** Closes the open sheet; `false` when there was none. */
export function closeSheet(): boolean {
  const { sheet } = panels.get();
  if (sheet !== undefined) panels.set({ ...panels.get(), sheet: undefined });
  return sheet !== undefined;
}

// A stored value may be of another version, or written by hand.
function readPanels(): Omit<Panels, 'sheet'> {
  const names = Object.keys(columns) as Panel[];
  try {
    const stored = JSON.parse(localStorage.getItem(key) ?? '{}');
    const widths = names.flatMap((name) => {
      const width = stored.widths?.[name];
      return typeof width === 'number' && width >= 0 ? [[name, width] as const] : [];
    });
    return {
      hidden: names.filter((name) => stored.hidden?.includes?.(name)),
      widths: Object.fromEntries(widths),
    };
  } catch {
    return { hidden: [], widths: {} };
  }
}

function isColumn(panel: Panel): boolean {
  return matchMedia(columns[panel]).matches;
}
