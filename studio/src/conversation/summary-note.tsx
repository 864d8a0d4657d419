import { type ReactNode, useMemo } from 'react';
import type { Message } from '../../../src/client/index.ts';
import { summaryOf } from '../../../src/protocol/messages.ts';

/** The summary that the model gets in place of the older messages, which are all still here. */
export function SummaryNote({ messages }: { readonly messages: readonly Message[] }): ReactNode {
  const summary = useMemo(() => summaryOf(messages), [messages]);
  if (summary === undefined) return null;
  return (
    <details className="summary-note quiet">
      <summary>
        The model gets a summary of the first {summary.messages.toLocaleString()} messages
      </summary>
      <p dir="auto">{summary.text}</p>
    </details>
  );
}
