import type { ReactNode } from 'react';

/** An error with its stack, as text. */
export function FaultText({ text }: { readonly text: string }): ReactNode {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a long stack scrolls, also by keyboard
    <section className="fault-stack" aria-label="Error with stack" tabIndex={0}>
      <pre dir="ltr">{text}</pre>
    </section>
  );
}
