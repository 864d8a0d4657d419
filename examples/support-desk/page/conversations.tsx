import { useEffect, useState } from 'react';
import { createClient } from 'waymark/client';
import type { Desk } from '../desk.ts';

const desk = createClient({ url: '/api' }).agent<Desk>('desk');

/** The conversations of the employee, newest first. */
export function Conversations({
  turns,
  onOpen,
}: {
  readonly turns: number;
  onOpen(sessionId?: string): void;
}) {
  const [items, setItems] = useState<Awaited<ReturnType<typeof desk.listSessions>>['items']>([]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the list is read again after each turn
  useEffect(() => {
    let isCurrent = true;
    void desk.listSessions({ limit: 20 }).then(
      (page) => isCurrent && setItems(page.items),
      () => {},
    );
    return () => {
      isCurrent = false;
    };
  }, [turns]);
  return (
    <nav aria-label="Conversations">
      <button type="button" onClick={() => onOpen()}>
        New conversation
      </button>
      {items.map(({ sessionId, title }) => (
        <button key={sessionId} type="button" onClick={() => onOpen(sessionId)}>
          {title ?? sessionId}
        </button>
      ))}
    </nav>
  );
}
