import { type RefObject, startTransition, useCallback, useEffect, useRef, useState } from 'react';

const atFirst = 12;
const more = 30;

/** A long conversation is rendered from its end; scrolling up renders more, and loads more when all of it is rendered. */
export function useEarlier(
  total: number,
  unloaded: number,
  load: () => Promise<void>,
): {
  readonly first: number;
  readonly earlier: RefObject<HTMLButtonElement | null>;
  readonly showEarlier: () => void;
} {
  const [shown, setShown] = useState(atFirst);
  const earlier = useRef<HTMLButtonElement>(null);
  const first = Math.max(0, total - shown);
  const isAllShown = first === 0;
  const showEarlier = useCallback(() => {
    if (isAllShown) void load();
    // In small tasks, so that scrolling stays smooth.
    startTransition(() => setShown((before) => before + more));
  }, [isAllShown, load]);
  useEffect(() => {
    const button = earlier.current;
    if (!button || (first === 0 && unloaded === 0)) return;
    const observer = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting) showEarlier();
    });
    // Only once the reader has come near the top by himself, not while the page is laid out.
    const timer = setTimeout(() => observer.observe(button), 400);
    return () => {
      clearTimeout(timer);
      observer.disconnect();
    };
  }, [first, unloaded, showEarlier]);
  return { first, earlier, showEarlier };
}
