import { useEffect, useState } from 'react';
import { serverUrl, studioHeaders } from './server.ts';

/** An error as the development server keeps it: `text` has its type, message, stack and causes. */
export interface SpanError {
  readonly status: string;
  readonly message: string;
  readonly text: string;
}

/** A span as the development server keeps it; without an end it still runs. */
export interface TraceSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId?: string;
  readonly name: string;
  readonly startedAt: number;
  readonly endedAt?: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly error?: SpanError;
  /** Whether the server has recorded what this model call sent and received. */
  readonly hasContent?: true;
}

/** The spans of a session, read again when `version` changes; `undefined` where the server keeps none. */
export function useTraces(
  sessionId: string | undefined,
  version: unknown,
): readonly TraceSpan[] | undefined {
  const [read, setRead] = useState<{
    readonly sessionId: string;
    readonly spans: readonly TraceSpan[] | undefined;
  }>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new version is a reason to read again
  useEffect(() => {
    if (sessionId === undefined) return;
    let isCurrent = true;
    readSpans(sessionId).then(
      (spans) => isCurrent && setRead({ sessionId, spans }),
      () => {},
    );
    return () => {
      isCurrent = false;
    };
  }, [sessionId, version]);
  // Traces of the session before do not count.
  return read === undefined || read.sessionId !== sessionId ? none : read.spans;
}

const none: readonly TraceSpan[] = [];

async function readSpans(sessionId: string): Promise<readonly TraceSpan[] | undefined> {
  const url = `${serverUrl}/studio/traces?session=${encodeURIComponent(sessionId)}`;
  const response = await fetch(url, { headers: studioHeaders() });
  if (response.status === 404) return undefined;
  const { items } = (await response.json()) as { items: readonly TraceSpan[] };
  return items;
}
