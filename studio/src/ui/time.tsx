import { type ReactNode, useSyncExternalStore } from 'react';
import { ago, clockTime, fullTime } from '../lib/format.ts';

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setInterval> | undefined;

/** The present time, to ten seconds. */
function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setInterval(() => {
    now = Date.now();
    for (const each of listeners) each();
  }, 10_000);
  return () => {
    listeners.delete(listener);
    if (listeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** How long ago something was, or at what time. */
export function Time({
  iso,
  form = 'ago',
}: {
  readonly iso: string;
  readonly form?: 'ago' | 'clock';
}): ReactNode {
  const time = Math.max(useNow(), now);
  return (
    <time dateTime={iso} title={fullTime(iso)}>
      {form === 'ago' ? ago(iso, time) : clockTime(iso, time)}
    </time>
  );
}
