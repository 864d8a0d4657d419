import { isSnapshotId } from '../../protocol/ids.ts';

const uuid = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const responsePattern = new RegExp(`^(?:resp_)?(${uuid})$`);
const itemPattern = new RegExp(`^(?:msg|rs|fc|fco)_(${uuid})_`);
const callPattern = new RegExp(`^call_(${uuid})_`);

/** The kinds of items, as their ids begin: messages, reasoning, function calls, and the outputs of those. */
export type ItemKind = 'msg' | 'rs' | 'fc' | 'fco';

/** The id of a response: that of the snapshot which its turn leaves. */
export function toResponseId(snapshotId: string): string {
  return `resp_${snapshotId}`;
}

/** The snapshot of a response; `undefined` for a text that is no such id. */
export function snapshotOfResponse(responseId: string): string | undefined {
  return responsePattern.exec(responseId)?.[1];
}

/** The id of an item, which names the response that it belongs to. */
export function toItemId(kind: ItemKind, snapshotId: string, place: number | string): string {
  return `${kind}_${snapshotId}_${place}`;
}

/** The snapshot of the response that an item belongs to. */
export function snapshotOfItem(itemId: unknown): string | undefined {
  return typeof itemId === 'string' ? itemPattern.exec(itemId)?.[1] : undefined;
}

/**
 * The id of a function call. It names the response that waits for its output: many clients send the output back without saying
 * which response it belongs to.
 */
export function toCallId(
  snapshotId: string | undefined,
  { toolName, ref = toolName }: { readonly toolName: string; readonly ref?: string | undefined },
): string {
  return snapshotId === undefined ? `call_${ref}` : `call_${snapshotId}_${ref}`;
}

/** The snapshot that waits for the output of a function call. */
export function snapshotOfCall(callId: unknown): string | undefined {
  return typeof callId === 'string' ? callPattern.exec(callId)?.[1] : undefined;
}

/** When a response was created, in seconds since 1970. Ids of snapshots begin with the time. */
export function createdAt(snapshotId: string): number {
  if (!isSnapshotId(snapshotId)) return 0;
  return Math.floor(Number.parseInt(snapshotId.slice(0, 8) + snapshotId.slice(9, 13), 16) / 1000);
}
