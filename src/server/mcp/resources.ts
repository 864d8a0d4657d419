import * as v from 'valibot';
import { defined } from '../../core/json/json.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { Artifact, State } from '../../protocol/state.ts';
import type { Fields } from '../http/json-rpc.ts';
import { openAgentCall } from '../http/server-context.ts';
import type { McpRequest } from './mcp-server.ts';
import { inlineMedia } from './result.ts';
import { parseUri, snapshotUri, unknownResource } from './uri.ts';

const pageSize = 50;

const listParams = v.object({ cursor: v.optional(v.string()) });
const readParams = v.object({ uri: v.string() });

/** The heads of the caller's sessions, the latest first, agent by agent. Older snapshots are read by their URI. */
export async function listResources(request: McpRequest): Promise<Fields> {
  const { cursor = '' } = parseShape(listParams, request.params, 'request');
  const agents = [...request.offered().values()].filter(({ metadata }) => metadata.timeline);
  const { at, rest } = parseCursor(cursor);
  const agent = agents[at];
  if (!agent) return { resources: [] };
  const subject = { agent, operation: 'listSessions' } as const;
  const { options } = await openAgentCall(request.c, subject);
  const place = defined({ cursor: rest || undefined });
  const page = await agent.listSessions({ ...options, limit: pageSize, ...place });
  const next = page.next === undefined ? at + 1 : at;
  return {
    resources: page.items.flatMap(({ sessionId, headId, title, updatedAt }) =>
      headId === undefined
        ? []
        : {
            uri: snapshotUri({ agent: agent.name, snapshotId: headId }),
            name: `${agent.name}: ${title ?? sessionId}`,
            mimeType: 'application/json',
            annotations: { lastModified: updatedAt },
          },
    ),
    nextCursor: next < agents.length ? `${next}:${page.next ?? ''}` : undefined,
  };
}

function parseCursor(cursor: string): { readonly at: number; readonly rest: string } {
  const [, at = '0', rest = ''] = /^(\d{1,4}):(.*)$/s.exec(cursor) ?? [];
  return { at: Number(at), rest };
}

/** A snapshot as JSON, or an artifact of it. What belongs to another owner is unknown. */
export async function readResource(request: McpRequest): Promise<Fields> {
  const { uri } = parseShape(readParams, request.params, 'request');
  const { agent: name, snapshotId, artifact } = parseUri(uri);
  const agent = [...request.offered().values()].find((each) => each.name === name);
  if (!agent || !isSnapshotId(snapshotId)) throw unknownResource(uri);
  const subject = { agent, operation: 'getSnapshot', snapshotId } as const;
  const { options } = await openAgentCall(request.c, subject);
  const snapshot = await agent.getSnapshot({ snapshotId }, options);
  if (!snapshot) throw unknownResource(uri);
  if (artifact === undefined) {
    return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify(snapshot) }] };
  }
  const { artifacts = [] } = (snapshot.state as State | undefined) ?? {};
  const found = artifacts.find((each) => each.name === artifact);
  if (!found) throw unknownResource(uri);
  return { contents: contentsOf(uri, found) };
}

function contentsOf(uri: string, { name, parts }: Artifact): readonly Fields[] {
  const texts = parts.flatMap((part) => ('text' in part ? part.text : []));
  if (texts.length === parts.length)
    return [{ uri, mimeType: textType(name), text: texts.join('') }];
  return parts.map((part) => {
    const media = 'media' in part ? inlineMedia(part.media) : undefined;
    if (media) return { uri, mimeType: media.mimeType, blob: media.data };
    return { uri, mimeType: 'application/json', text: JSON.stringify(part) };
  });
}

export function textType(name: string | undefined): string {
  const [, ending = ''] = /\.(\w+)$/.exec(name ?? '') ?? [];
  return textTypes[ending.toLowerCase()] ?? 'text/plain';
}

const textTypes: Readonly<Record<string, string>> = {
  md: 'text/markdown',
  html: 'text/html',
  csv: 'text/csv',
  json: 'application/json',
};
