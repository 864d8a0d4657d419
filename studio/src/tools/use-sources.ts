import { useEffect, useState } from 'react';
import type { JsonRecord } from '../lib/json.ts';
import { pulse } from '../lib/pulse.ts';
import { serverUrl } from '../lib/server.ts';
import { useSource } from '../lib/use-source.ts';

/** A tool as its source lists it. */
export interface ListedTool {
  readonly name: string;
  readonly description?: string | undefined;
  readonly inputSchema?: JsonRecord;
  /** The annotations of an MCP server about the tool's effects. */
  readonly hints?: JsonRecord;
}

/** The connection of a tool source: one, or one for each user. */
export interface SourceConnection {
  readonly state: 'idle' | 'connecting' | 'connected' | 'failed';
  readonly user?: string;
  readonly tools?: readonly ListedTool[];
  readonly lastError?: { readonly at: string; readonly message: string; readonly stack: string };
  readonly retryAt?: number;
}

/** A tool source of the app, such as an MCP server. */
export interface SourceInfo {
  readonly name: string;
  /** Absent where the source does not tell its state. */
  readonly connections?: readonly SourceConnection[];
}

/** The tool sources; `undefined` until they are known, and `refused` where the server does not tell. */
export type Sources = readonly SourceInfo[] | 'refused' | undefined;

/** The tool sources of the app. They are read again whenever the page asks the server for news. */
export function useSources(): Sources {
  const { beat } = useSource(pulse);
  const [sources, setSources] = useState<Sources>();
  // biome-ignore lint/correctness/useExhaustiveDependencies: with each beat, the state of a source may be another one
  useEffect(() => {
    const stop = new AbortController();
    void read(stop.signal).then((found) => {
      if (found !== undefined && !stop.signal.aborted) setSources(found);
    });
    return () => stop.abort();
  }, [beat]);
  return sources;
}

async function read(signal: AbortSignal): Promise<Sources> {
  try {
    const headers = { 'x-waymark-studio': '1' };
    const response = await fetch(`${serverUrl}/studio/sources`, { headers, signal });
    if (response.status === 404) return 'refused';
    return response.ok ? (await response.json()).items : undefined;
  } catch {
    // The last known ones stay until the server is back.
    return undefined;
  }
}
