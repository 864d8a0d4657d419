import { serverUrl, studioHeaders } from '../lib/server.ts';

/** The turn that is run again, and its changes. */
export interface RerunChanges {
  readonly scope: 'turn' | 'conversation';
  readonly tools: 'recorded' | 'live';
  readonly model?: string;
  readonly system?: string;
  readonly config?: { readonly temperature: number };
}

/** The metadata of a session that a rerun has made, until it is kept: the snapshot that was run again. */
export const rerunMark = 'waymark.rerunOf';

/** Runs a turn again on the development server, which stops when the signal aborts. Throws what the server says. */
export async function rerun(
  request: RerunChanges & { readonly agent: string; readonly snapshotId: string },
  signal: AbortSignal,
): Promise<{ readonly sessionId: string; readonly stopped?: string }> {
  const response = await fetch(`${serverUrl}/studio/rerun`, {
    method: 'POST',
    headers: { ...studioHeaders(), 'content-type': 'application/json' },
    body: JSON.stringify(request),
    signal,
  });
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  throw new Error(
    body?.error?.message ?? body?.message ?? `The server answered ${response.status}.`,
  );
}
