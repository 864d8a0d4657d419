import { type RefObject, useLayoutEffect, useRef } from 'react';

/** Keeps the end of a conversation in view while it grows, unless its reader has scrolled away from it. */
export function useStickToEnd(): {
  readonly scroller: RefObject<HTMLElement | null>;
  readonly content: RefObject<HTMLDivElement | null>;
} {
  const scroller = useRef<HTMLElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element || !content.current) return;
    let top = 0;
    const onScroll = (): void => {
      const isNear = element.scrollHeight - element.scrollTop - element.clientHeight < 60;
      // Content that grows moves the end away as well; only scrolling up leaves it.
      if (isNear || element.scrollTop < top) isAtEnd.current = isNear;
      top = element.scrollTop;
    };
    // Also called after the first layout, before it is painted, so that rendering does not force a layout in order to scroll.
    const observer = new ResizeObserver(() => {
      if (isAtEnd.current) element.scrollTop = element.scrollHeight;
    });
    element.addEventListener('scroll', onScroll, { passive: true });
    observer.observe(content.current);
    observer.observe(element);
    return () => {
      element.removeEventListener('scroll', onScroll);
      observer.disconnect();
    };
  }, []);
  return { scroller, content };
}
