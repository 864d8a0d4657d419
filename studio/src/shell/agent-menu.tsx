import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import type { AgentInfo } from '../../../src/client/index.ts';
import { goTo } from '../lib/place.ts';
import { Icon } from '../ui/icon.tsx';

/** The agents to choose from. */
export function AgentMenu({
  agents,
  current,
}: {
  readonly agents: readonly AgentInfo[];
  readonly current: AgentInfo | undefined;
}): ReactNode {
  const [isOpen, setOpen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const chosen = '[aria-checked=true], [role=menuitemradio]';
    frame.current?.querySelector<HTMLElement>(chosen)?.focus();
    const onDown = (event: PointerEvent): void => {
      if (event.target instanceof Node && !frame.current?.contains(event.target)) setOpen(false);
    };
    document.addEventListener('pointerdown', onDown);
    return () => document.removeEventListener('pointerdown', onDown);
  }, [isOpen]);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Escape') {
      event.stopPropagation();
      setOpen(false);
      frame.current?.querySelector('button')?.focus();
    }
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const items = [...(frame.current?.querySelectorAll<HTMLElement>('[role=menuitemradio]') ?? [])];
    items.at((items.indexOf(document.activeElement as HTMLElement) + step) % items.length)?.focus();
  };
  if (agents.length === 0) return null;
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys are those of the button and the menu inside
    <div className="agent-menu" ref={frame} onKeyDown={onKeyDown}>
      <button
        type="button"
        className="agent-button"
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-label={current ? `Agent: ${current.name}` : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        <span>{current?.name ?? 'Agents'}</span>
        <Icon name="chevron" size={12} />
      </button>
      {isOpen && (
        <div className="menu" role="menu" aria-label="Agents">
          {agents.map(({ name, description }) => (
            <button
              key={name}
              type="button"
              role="menuitemradio"
              aria-checked={name === current?.name}
              onClick={() => {
                setOpen(false);
                goTo({ view: 'chat', agent: name });
              }}
            >
              <span className="menu-name">{name}</span>
              {description !== undefined && <span className="quiet">{description}</span>}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}
