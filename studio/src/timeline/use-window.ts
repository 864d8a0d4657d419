import { type RefObject, useEffect, useLayoutEffect, useState } from 'react';

/** Which rows of a long list are drawn: those to be seen, and some around them. */
export interface Window {
  readonly first: number;
  readonly end: number;
  readonly onScroll: () => void;
}

/** Rows are drawn in steps of so many, so that not every pixel of scrolling draws again. */
const step = 8;

/** The window of a scrolled list of equal rows. */
export function useWindow(
  scroller: RefObject<HTMLElement | null>,
  rowHeight: number,
  rows: number,
): Window {
  const [range, setRange] = useState({ first: 0, end: 48 });
  const measure = (): void => {
    const element = scroller.current;
    if (!element) return;
    const top = Math.floor(element.scrollTop / rowHeight / step) * step;
    const seen = Math.ceil(element.clientHeight / rowHeight / step) * step;
    const first = Math.max(0, top - step);
    const end = top + seen + 2 * step;
    setRange((before) => (before.first === first && before.end === end ? before : { first, end }));
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: more rows may show more of them
  useLayoutEffect(measure, [rows]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the observer is made once and measures what is there
  useEffect(() => {
    const element = scroller.current;
    if (!element) return;
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { first: Math.min(range.first, rows), end: Math.min(range.end, rows), onScroll: measure };
}
