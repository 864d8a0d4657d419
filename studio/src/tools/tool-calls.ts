import type { Json, JsonRecord } from '../lib/json.ts';
import { serverUrl } from '../lib/server.ts';

/** A tool, by whose it is: an agent's, or a tool source's. */
export interface ToolName {
  readonly agent?: string;
  readonly source?: string;
  readonly tool: string;
}

/** A question that a tool has asked, and the answer. */
export interface ToolAnswer {
  readonly interrupted: Json;
  readonly resumed: Json;
}

/** The outcome of a call. */
export type ToolOutcome =
  | {
      readonly output: Json;
      readonly content: readonly JsonRecord[];
      /** The state after the call, if the tool changed it. */
      readonly custom?: Json;
    }
  | { readonly interrupted: Json }
  | {
      readonly failed: {
        readonly status: string;
        readonly message: string;
        readonly stack: string;
      };
    };

/** Calls a tool on the development server. Each call has an id, so that a request that the browser sends again runs nothing twice. */
export async function callTool(
  name: ToolName,
  request: { readonly input: JsonRecord; readonly answer?: ToolAnswer },
  signal: AbortSignal,
): Promise<ToolOutcome> {
  const response = await fetch(`${serverUrl}/studio/tools/run`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-waymark-studio': '1' },
    body: JSON.stringify({ id: crypto.randomUUID(), ...name, ...request }),
    signal,
  });
  const body = await response.json().catch(() => ({}));
  if (response.ok) return body;
  throw new Error(body?.error?.message ?? `The server answered ${response.status}.`);
}
