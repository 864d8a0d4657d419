import type { ReactNode } from 'react';

/** The placeholder of an empty list: what it would show, and what to do. */
export function Empty({
  title,
  isPage = false,
  children,
}: {
  readonly title: string;
  /** It is all there is on the page. @default false */
  readonly isPage?: boolean;
  readonly children?: ReactNode;
}): ReactNode {
  return (
    <div className="empty">
      {isPage ? <h1 className="empty-title">{title}</h1> : <p className="empty-title">{title}</p>}
      {children}
    </div>
  );
}
