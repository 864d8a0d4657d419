import type { ReactNode } from 'react';

/** Whether an address can be offered as a link. */
export function isWebAddress(url: string): boolean {
  return /^(?:https?:\/\/|mailto:)/i.test(url);
}

/** A picture. One from elsewhere would tell its server who is reading; it is offered as a link instead. */
export function imageView(url: string, alt: string): ReactNode {
  if (/^data:image\/[\w.+-]+[;,]/i.test(url)) return <img src={url} alt={alt} />;
  if (!isWebAddress(url)) return alt;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      Picture: {alt || url}
    </a>
  );
}
