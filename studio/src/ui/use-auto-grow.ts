import { type RefObject, useLayoutEffect, useRef } from 'react';

/** Where the style sheet can do it, no layout is forced for it. */
const growsByStyle = CSS.supports('field-sizing', 'content');

/** A text field that is as high as its text, up to what its style allows. */
export function useAutoGrow(text: string): RefObject<HTMLTextAreaElement | null> {
  const field = useRef<HTMLTextAreaElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another text has another height
  useLayoutEffect(() => {
    const element = field.current;
    if (!element || growsByStyle) return;
    element.style.height = 'auto';
    element.style.height = `${element.scrollHeight + 2}px`;
  }, [text]);
  return field;
}
