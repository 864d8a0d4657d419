import type { ReactNode } from 'react';

/** The end of a long name is what tells files apart. */
const tailLength = 14;

/** A file name; a long one is cut in its middle. */
export function FileName({ name }: { readonly name: string }): ReactNode {
  if (name.length <= tailLength * 2) {
    return (
      <span className="file-name" dir="auto">
        {name}
      </span>
    );
  }
  const at = name.length - tailLength;
  return (
    <span className="file-name cut" dir="auto" title={name}>
      <span>{name.slice(0, at)}</span>
      <span>{name.slice(at)}</span>
    </span>
  );
}
