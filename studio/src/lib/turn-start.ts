import type { AgentStore } from '../../../src/react/index.ts';

/** Tells whether the next turn that a store sends starts on the server. Watch before sending; `end` ends that. */
export function watchTurnStart(store: Pick<AgentStore, 'getView' | 'subscribe'>): {
  hasStarted(): boolean;
  end(): void;
} {
  let isSent = false;
  let hasStarted = false;
  const end = store.subscribe(() => {
    const { phase } = store.getView();
    // A run that is followed before that is another one.
    if (phase === 'sending') isSent = true;
    if (!isSent) return;
    if (phase === 'running') hasStarted = true;
    // Later changes are about another turn or another session.
    if (phase !== 'sending' && phase !== 'stopping') end();
  });
  return { hasStarted: () => hasStarted, end };
}
