import { useEffect, useState } from 'react';
import type { Message, Usage } from '../../../src/client/index.ts';
import type { Json, JsonRecord } from './json.ts';
import { serverUrl, studioHeaders } from './server.ts';
import type { TraceSpan } from './traces.ts';

/** A tool as the model was told about it. */
export interface SentTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: Json;
}

/** A model call as the development server recorded it. */
export interface ModelCall {
  /** The name of the model in the app. */
  readonly model: string;
  readonly request: {
    readonly messages: readonly Message[];
    readonly tools?: readonly SentTool[];
    readonly toolChoice?: Json;
    readonly config?: JsonRecord;
    readonly output?: JsonRecord;
  };
  /** Absent while the call runs, and when it failed. */
  readonly response?: {
    readonly message: Message;
    readonly finishReason: string;
    readonly usage?: Usage;
    readonly warnings?: readonly Json[];
    readonly metadata?: JsonRecord;
  };
  /** How many messages at the start are not recorded, because the call was too large. */
  readonly omitted?: number;
}

/** A recorded model call; `missing` where the server has dropped it. */
export function useModelCall(
  sessionId: string,
  span: Pick<TraceSpan, 'spanId' | 'endedAt'> | undefined,
): ModelCall | 'missing' | undefined {
  const [read, setRead] = useState<{ readonly id: string; readonly call: ModelCall | 'missing' }>();
  const { spanId, endedAt } = span ?? {};
  // biome-ignore lint/correctness/useExhaustiveDependencies: a call that has ended is read again, with its response
  useEffect(() => {
    if (spanId === undefined) return;
    let isCurrent = true;
    readCall(sessionId, spanId).then(
      (call) => isCurrent && setRead({ id: spanId, call }),
      () => isCurrent && setRead({ id: spanId, call: 'missing' }),
    );
    return () => {
      isCurrent = false;
    };
  }, [sessionId, spanId, endedAt]);
  return read !== undefined && read.id === spanId ? read.call : undefined;
}

async function readCall(sessionId: string, spanId: string): Promise<ModelCall | 'missing'> {
  const query = new URLSearchParams({ session: sessionId, span: spanId });
  const response = await fetch(`${serverUrl}/studio/calls?${query}`, { headers: studioHeaders() });
  if (!response.ok) return 'missing';
  const { content } = (await response.json()) as { content: ModelCall };
  return content;
}
