import { short } from '../http/answer.ts';
import { RpcError } from '../http/json-rpc.ts';
import { codes } from './messages.ts';

/** The reference of a resource: a snapshot, or one artifact of it. */
export interface ResourceRef {
  readonly agent: string;
  readonly snapshotId: string;
  readonly artifact?: string | undefined;
}

export const templates = [
  {
    uriTemplate: 'waymark://{agent}/snapshots/{snapshotId}',
    name: 'snapshot',
    title: 'Snapshot',
    description: 'The messages, state and artifacts after one turn, as JSON.',
    mimeType: 'application/json',
  },
  {
    uriTemplate: 'waymark://{agent}/snapshots/{snapshotId}/artifacts/{name}',
    name: 'artifact',
    title: 'Artifact',
    description: 'A file, image or table as it was after one turn.',
  },
] as const;

export function snapshotUri({ agent, snapshotId }: ResourceRef): string {
  return `waymark://${encodeURIComponent(agent)}/snapshots/${snapshotId}`;
}

export function artifactUri(ref: ResourceRef & { readonly artifact: string }): string {
  return `${snapshotUri(ref)}/artifacts/${encodeURIComponent(ref.artifact)}`;
}

/** Reads a URI; one that is not a resource of this server is unknown. */
export function parseUri(uri: string): ResourceRef {
  const match = /^waymark:\/\/([^/]+)\/snapshots\/([^/]+)(?:\/artifacts\/([^/]+))?$/.exec(uri);
  try {
    if (!match) throw unknownResource(uri);
    const [agent = '', snapshotId = '', artifact] = match
      .slice(1)
      .map((part) => part && decodeURIComponent(part));
    return { agent, snapshotId, artifact };
  } catch {
    throw unknownResource(uri);
  }
}

/** The error for a resource that this caller does not have, whether or not another one has it. */
export function unknownResource(uri: string): RpcError {
  return new RpcError(codes.invalidParams, `There is no resource ${short(uri)} here.`, {
    data: { uri },
  });
}
