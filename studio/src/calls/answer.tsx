import type { ReactNode } from 'react';
import type { ModelCall } from '../lib/model-calls.ts';
import type { TraceSpan } from '../lib/traces.ts';
import { FaultText } from '../ui/fault-text.tsx';
import { JsonTree } from '../ui/json-tree.tsx';
import { SentMessage } from './sent-message.tsx';

/** The answer of a model call, or why there is none. */
export function Answer({
  call: { response },
  span,
}: {
  readonly call: ModelCall;
  readonly span: TraceSpan;
}): ReactNode {
  return (
    <section>
      <h3>Response</h3>
      {response && <SentMessage message={response.message} isNew={false} />}
      {!response && span.error && <FaultText text={span.error.text} />}
      {!response && !span.error && (
        <p className="quiet">
          {span.endedAt === undefined ? 'The model has not answered yet.' : 'Not recorded.'}
        </p>
      )}
      {response?.warnings && response.warnings.length > 0 && (
        <>
          <h3>Warnings</h3>
          <JsonTree value={[...response.warnings]} label="Warnings" open={2} />
        </>
      )}
      {response?.metadata && Object.keys(response.metadata).length > 0 && (
        <>
          <h3>Metadata</h3>
          <JsonTree value={response.metadata} label="Metadata" open={1} />
        </>
      )}
    </section>
  );
}
