import { type ReactNode, useEffect, useState } from 'react';
import { Icon } from './icon.tsx';

/** Copies a text, and says so for a moment. */
export function CopyButton({
  text,
  label,
}: {
  readonly text: string;
  readonly label: string;
}): ReactNode {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return;
    const timer = setTimeout(() => setCopied(false), 1_500);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = (): void => {
    navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => {},
    );
  };
  return (
    <button
      type="button"
      className="icon-button"
      onClick={copy}
      aria-label={copied ? 'Copied' : label}
      title={label}
    >
      <Icon name={copied ? 'check' : 'copy'} />
    </button>
  );
}
