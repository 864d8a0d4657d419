import type { ReactNode } from 'react';
import { goTo } from '../lib/place.ts';
import { lookNow } from '../lib/pulse.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { Icon } from '../ui/icon.tsx';
import { toast } from '../ui/toasts.tsx';
import { rerunMark } from './rerun.ts';

/** Above a session that a rerun has made: a person keeps or discards it. */
export function RerunBar(): ReactNode {
  const { agent, session } = useWorkbench();
  if (session === undefined || session === 'gone') return null;
  const { sessionId, metadata = {}, forkedFrom } = session;
  const { [rerunMark]: original, ...rest } = metadata;
  if (typeof original !== 'string') return null;
  const attempt = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await work();
      lookNow();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      toast({ text: `That did not work. ${reason}`, isFault: true });
    }
  };
  const keep = (): Promise<void> =>
    attempt(() =>
      agent.updateSession(sessionId, { metadata: Object.keys(rest).length > 0 ? rest : null }),
    );
  const discard = (): Promise<void> =>
    attempt(async () => {
      await agent.deleteSession(sessionId);
      const source = forkedFrom?.sessionId;
      goTo({ view: 'chat', agent: agent.name, ...(source !== undefined && { session: source }) });
    });
  return (
    <section className="past-bar" aria-label="Replay">
      <span className="past-place">
        <Icon name="compare" size={14} />
        <strong>A replay</strong>
        <span className="quiet">The original is unchanged.</span>
      </span>
      <span className="past-actions">
        <button
          type="button"
          className="button"
          onClick={() =>
            goTo({ view: 'chat', agent: agent.name, session: sessionId, base: original })
          }
        >
          <Icon name="compare" size={14} /> Compare with the original
        </button>
        <button type="button" className="button primary" onClick={() => void keep()}>
          <Icon name="check" size={14} /> Keep it
        </button>
        <button type="button" className="button danger" onClick={() => void discard()}>
          <Icon name="close" size={14} /> Discard
        </button>
      </span>
    </section>
  );
}
