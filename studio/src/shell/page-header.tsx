import type { ReactNode } from 'react';
import { usePlace } from '../lib/place.ts';

/** The heading of a page, what it lists, and whose sessions these are. */
export function PageHeader({
  title,
  children,
}: {
  readonly title: string;
  readonly children: ReactNode;
}): ReactNode {
  const { owner } = usePlace();
  return (
    <header className="page-header">
      <h1>{title}</h1>
      <p className="quiet">{children}</p>
      {owner !== undefined && (
        <p className="quiet" dir="auto">
          Owner: {owner}
        </p>
      )}
    </header>
  );
}
