import { type ReactNode, useState } from 'react';
import { callBefore } from '../lib/call-history.ts';
import { useModelCall } from '../lib/model-calls.ts';
import type { TraceSpan } from '../lib/traces.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Icon } from '../ui/icon.tsx';
import { ModelCallView } from './model-call-view.tsx';

/** The recorded call of a model span, inside the trace and on demand over the whole page. */
export function RecordedCall({
  span,
  sessionId,
}: {
  readonly span: TraceSpan;
  readonly sessionId: string;
}): ReactNode {
  const { spans = [] } = useWorkbench();
  const [isWide, setWide] = useState(false);
  const call = useModelCall(sessionId, span);
  const before = useModelCall(sessionId, callBefore(spans, span));
  if (call === undefined) return <p className="quiet">Loading the call…</p>;
  if (call === 'missing') {
    return (
      <p className="quiet">This call is no longer recorded: the server keeps the latest 32 MB.</p>
    );
  }
  const shown = { call, before: before === 'missing' ? undefined : before, span };
  return (
    <>
      <button type="button" className="text-button" onClick={() => setWide(true)}>
        <Icon name="inspector" size={14} /> Open in full size
      </button>
      <section aria-label={`Model call ${call.model}`}>
        <ModelCallView {...shown} />
      </section>
      {isWide && (
        <Dialog title={`Model call: ${call.model}`} onClose={() => setWide(false)} wide>
          <ModelCallView {...shown} />
        </Dialog>
      )}
    </>
  );
}
