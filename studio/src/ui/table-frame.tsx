import type { ReactNode } from 'react';

/** Around a table: it scrolls sideways on a narrow screen, also by keyboard. */
export function TableFrame({
  label,
  children,
}: {
  readonly label: string;
  readonly children: ReactNode;
}): ReactNode {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a page may show several, so it is no region, and no part of a form
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
    <div role="group" className="table-frame" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}
