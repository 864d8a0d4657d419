import { type KeyboardEvent, type PointerEvent, type ReactNode, useRef } from 'react';
import { useSource } from '../lib/use-source.ts';
import { type Panel, panels, resizePanel, widthRange } from './panels.ts';

const step = 16;

/** The edge of a column: drag it, or use the arrow keys; a double click gives the column its usual width again. */
export function ResizeHandle({
  panel,
  label,
}: {
  readonly panel: Panel;
  readonly label: string;
}): ReactNode {
  const { widths } = useSource(panels);
  const start = useRef<{ readonly x: number; readonly width: number }>(undefined);
  // The inspector is on the other side: it grows to the left.
  const isEnd = panel === 'inspector';
  const onPointerDown = (event: PointerEvent<HTMLElement>): void => {
    event.currentTarget.setPointerCapture(event.pointerId);
    start.current = { x: event.clientX, width: widthOf(event.currentTarget) };
  };
  const onPointerMove = (event: PointerEvent): void => {
    if (!start.current) return;
    const moved = (event.clientX - start.current.x) * (isEnd ? -1 : 1) * direction();
    resizePanel(panel, start.current.width + moved);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    const sign = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (sign === 0) return;
    event.preventDefault();
    const moved = sign * step * (isEnd ? -1 : 1) * direction();
    resizePanel(panel, widthOf(event.currentTarget) + moved);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a rule cannot be focused and moved
    <div
      className="resize-handle"
      data-side={isEnd ? 'start' : 'end'}
      role="separator"
      aria-orientation="vertical"
      aria-label={`Width of ${label.toLowerCase()}`}
      aria-valuemin={widthRange.min}
      aria-valuemax={widthRange.max}
      aria-valuenow={widths[panel] ?? widthRange.min}
      tabIndex={0}
      onPointerDown={onPointerDown}
      onPointerMove={onPointerMove}
      onPointerUp={() => {
        start.current = undefined;
      }}
      onDoubleClick={() => resizePanel(panel, undefined)}
      onKeyDown={onKeyDown}
    />
  );
}

function widthOf(handle: HTMLElement): number {
  return handle.parentElement?.getBoundingClientRect().width ?? 0;
}

function direction(): 1 | -1 {
  return document.dir === 'rtl' ? -1 : 1;
}
