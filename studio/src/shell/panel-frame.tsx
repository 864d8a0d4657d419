import { type ReactNode, useLayoutEffect, useRef } from 'react';
import { Icon } from '../ui/icon.tsx';
import { closeSheet, type Panel } from './panels.ts';
import { ResizeHandle } from './resize-handle.tsx';

/** A panel beside the conversation; where there is no room, a sheet over it. */
export function PanelFrame({
  panel,
  label,
  sheet,
  children,
}: {
  readonly panel: Panel;
  readonly label: string;
  readonly sheet: Panel | undefined;
  readonly children: ReactNode;
}): ReactNode {
  const isSheet = sheet === panel;
  const frame = useRef<HTMLElement>(null);
  const close = useRef<HTMLButtonElement>(null);
  // Before anything else can happen, so that a command that opens a sheet can say where in it the focus goes.
  useLayoutEffect(() => {
    if (!isSheet) return;
    const sheet = frame.current;
    const before = document.activeElement;
    close.current?.focus();
    return () => {
      const { activeElement } = document;
      const isElsewhere = activeElement !== document.body && !sheet?.contains(activeElement);
      if (before instanceof HTMLElement && !isElsewhere) before.focus();
    };
  }, [isSheet]);
  return (
    <>
      {isSheet && (
        <button
          type="button"
          className="scrim"
          tabIndex={-1}
          aria-hidden="true"
          onClick={() => closeSheet()}
        />
      )}
      <aside
        ref={frame}
        className="panel"
        data-panel={panel}
        data-sheet={isSheet || undefined}
        aria-label={label}
      >
        <button
          ref={close}
          type="button"
          className="icon-button sheet-close"
          onClick={() => closeSheet()}
          aria-label={`Close ${label.toLowerCase()}`}
        >
          <Icon name="close" />
        </button>
        {children}
        {!isSheet && <ResizeHandle panel={panel} label={label} />}
      </aside>
    </>
  );
}
