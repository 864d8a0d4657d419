import { isRecord, type Json } from '../lib/json.ts';

/** A tool request inside the session of a sub-agent. */
export interface InnerRequest {
  readonly toolRequest: { readonly name: string; readonly ref?: string; readonly input?: Json };
}

/** The requests that a sub-agent waits with, as its interrupt carries them. */
export function innerRequests(data: Json): readonly InnerRequest[] {
  if (!isRecord(data) || !Array.isArray(data.requests)) return [];
  return data.requests.flatMap((request) => {
    const { toolRequest } = isRecord(request) ? request : {};
    if (!isRecord(toolRequest) || typeof toolRequest.name !== 'string') return [];
    const { name, ref, input } = toolRequest;
    return [
      {
        toolRequest: {
          name,
          ...(typeof ref === 'string' && { ref }),
          ...(input !== undefined && { input }),
        },
      },
    ];
  });
}
