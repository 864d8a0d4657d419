import { type ReactNode, useEffect } from 'react';
import { createSource } from '../lib/observable.ts';
import { useSource } from '../lib/use-source.ts';
import { Icon } from './icon.tsx';

/** A short message at the edge of the screen, optionally with an undo button. */
export interface Toast {
  readonly text: string;
  readonly isFault?: boolean;
  /** A newer one about the same takes its place. */
  readonly about?: string;
  readonly action?: { readonly label: string; readonly run: () => void };
}

const shown = createSource<readonly (Toast & { readonly id: number })[]>([]);
let lastId = 0;

/** Shows a message for a few seconds. */
export function toast(message: Toast): void {
  if (message.about !== undefined) dropToasts(message.about);
  shown.set([...shown.get().slice(-2), { ...message, id: ++lastId }]);
}

/** Takes back what is not true any more. */
export function dropToasts(about: string): void {
  shown.set(shown.get().filter((each) => each.about !== about));
}

function drop(id: number): void {
  shown.set(shown.get().filter((each) => each.id !== id));
}

/** The messages that are shown now. */
export function Toasts(): ReactNode {
  const list = useSource(shown);
  return (
    <output className="toasts" aria-live="polite" aria-label="Notices">
      {list.map((each) => (
        <ToastView key={each.id} toast={each} onGone={() => drop(each.id)} />
      ))}
    </output>
  );
}

function ToastView({
  toast: { text, action, isFault = false },
  onGone,
}: {
  readonly toast: Toast;
  readonly onGone: () => void;
}): ReactNode {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the time runs from when it is shown
  useEffect(() => {
    const timer = setTimeout(onGone, isFault || action ? 8_000 : 4_000);
    return () => clearTimeout(timer);
  }, []);
  return (
    <span className={isFault ? 'toast fault' : 'toast'}>
      {isFault && <Icon name="warning" />}
      <span>{text}</span>
      {action && (
        <button
          type="button"
          className="text-button"
          onClick={() => {
            action.run();
            onGone();
          }}
        >
          {action.label}
        </button>
      )}
      <button type="button" className="icon-button" onClick={onGone} aria-label="Dismiss">
        <Icon name="close" size={12} />
      </button>
    </span>
  );
}
