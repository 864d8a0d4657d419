import * as v from 'valibot';
import type { ErrorBody } from '../../../core/error.ts';
import { errorBody } from '../../../protocol/error-body.ts';
import { jsonObject, jsonValue } from '../../../protocol/json-value.ts';
import { message } from '../../../protocol/message.ts';
import { session as sessionInfo } from '../../../protocol/session.ts';
import { editNote, snapshotEvent } from '../../../protocol/snapshot.ts';
import { finishReason, usage } from '../../../protocol/turn.ts';
import type { SteeringMessage } from '../../contract/store.ts';
import type { SessionRow, SnapshotRow } from '../../memory/tables.ts';
import { stateDelta } from './state-delta.ts';

/** A time: ISO 8601 in the file, milliseconds in memory. */
export const time = v.pipe(
  v.string(),
  v.transform((text) => Date.parse(text)),
  v.finite(),
);

/** The first line of a journal. */
export const journalHead = v.object({
  waymark: v.number(),
  /** New whenever the file is rewritten. */
  id: v.string(),
  agent: v.string(),
  owner: v.optional(v.string()),
  /** The session that the folder is named after. */
  session: v.string(),
});

/** What is new about a session; what never changes is said once. */
const sessionLine = v.object({
  id: v.string(),
  createdAt: v.optional(time),
  updatedAt: v.optional(time),
  /** `null`: there is none any more. */
  title: v.nullish(v.string()),
  metadata: v.nullish(jsonObject),
  head: v.nullish(v.string()),
  nextIndex: v.optional(v.number()),
  /** Messages that its runs have left. */
  inbox: v.nullish(v.array(v.object({ id: v.string(), message, runId: v.string() }))),
  forkedFrom: sessionInfo.entries.forkedFrom,
  startedBy: sessionInfo.entries.startedBy,
});

/** A snapshot as it is from now on; its state only when that is new. */
const snapshotLine = v.object({
  id: v.string(),
  parent: v.exactOptional(v.string()),
  /** Not there: not listed. */
  index: v.exactOptional(v.number()),
  turnIndex: v.number(),
  event: snapshotEvent,
  status: v.picklist(['pending', 'succeeded', 'failed', 'aborted']),
  finishReason: v.exactOptional(finishReason),
  error: v.exactOptional(
    v.pipe(
      errorBody,
      v.transform((body) => body as ErrorBody),
    ),
  ),
  edit: v.exactOptional(editNote),
  usage: v.exactOptional(usage),
  totals: v.exactOptional(v.object({ tokens: v.number(), toolCalls: v.number() })),
  label: v.exactOptional(v.string()),
  createdAt: time,
  updatedAt: time,
  heartbeatAt: v.exactOptional(time),
  ttl: v.exactOptional(v.number()),
  partialFrom: v.exactOptional(v.number()),
  stateHash: v.string(),
  state: v.exactOptional(stateDelta),
});

/** One change of one session: all of it or, when the line is cut short, nothing. */
export const journalLine = v.object({
  session: sessionLine,
  snapshots: v.optional(v.array(snapshotLine)),
  /** States that were saved but not listed, and whose time is over. */
  dropped: v.optional(v.array(v.string())),
  /** The run that is over with this change. */
  ended: v.optional(v.string()),
  /** What runs under request ids came to. */
  receipts: v.optional(v.array(v.object({ run: v.string(), at: time, value: jsonValue }))),
});

export interface JournalHead extends v.InferOutput<typeof journalHead> {}
/** A session's change as it is read. */
export interface SessionChange extends v.InferOutput<typeof sessionLine> {}
/** A snapshot as it is read. */
export interface SnapshotChange extends v.InferOutput<typeof snapshotLine> {}
/** A line as it is written. */
export interface JournalLine extends v.InferInput<typeof journalLine> {}
export interface SessionLine extends v.InferInput<typeof sessionLine> {}
export interface SnapshotLine extends v.InferInput<typeof snapshotLine> {}

/** What a session was when it was last written or read. */
export class SavedSession {
  readonly updatedAt: SessionRow['updatedAt'];
  readonly title: SessionRow['title'];
  readonly metadata: SessionRow['metadata'];
  readonly head: SessionRow['head'];
  readonly nextIndex: SessionRow['nextIndex'];
  readonly inbox: SessionRow['inbox'];
  readonly listed: number;

  constructor(row: SessionRow) {
    this.updatedAt = row.updatedAt;
    this.title = row.title;
    this.metadata = row.metadata;
    this.head = row.head;
    this.nextIndex = row.nextIndex;
    this.inbox = row.inbox;
    this.listed = row.listed.length;
  }
}

/** What a snapshot was when it was last written or read, without its state. */
export class SavedSnapshot {
  readonly parent: SnapshotRow['parent'];
  readonly index: SnapshotRow['index'];
  readonly turnIndex: SnapshotRow['turnIndex'];
  readonly event: SnapshotRow['event'];
  readonly status: SnapshotRow['status'];
  readonly finishReason: SnapshotRow['finishReason'];
  readonly error: SnapshotRow['error'];
  readonly edit: SnapshotRow['edit'];
  readonly usage: SnapshotRow['usage'];
  readonly totals: SnapshotRow['totals'];
  readonly label: SnapshotRow['label'];
  readonly createdAt: SnapshotRow['createdAt'];
  readonly updatedAt: SnapshotRow['updatedAt'];
  readonly heartbeatAt: SnapshotRow['heartbeatAt'];
  readonly ttl: SnapshotRow['ttl'];
  readonly stateHash: SnapshotRow['stateHash'];
  readonly partialFrom: SnapshotRow['partialFrom'];

  constructor(row: SnapshotRow) {
    this.parent = row.parent;
    this.index = row.index;
    this.turnIndex = row.turnIndex;
    this.event = row.event;
    this.status = row.status;
    this.finishReason = row.finishReason;
    this.error = row.error;
    this.edit = row.edit;
    this.usage = row.usage;
    this.totals = row.totals;
    this.label = row.label;
    this.createdAt = row.createdAt;
    this.updatedAt = row.updatedAt;
    this.heartbeatAt = row.heartbeatAt;
    this.ttl = row.ttl;
    this.stateHash = row.stateHash;
    this.partialFrom = row.partialFrom;
  }
}

/** Whether a snapshot is as it was saved. */
export function isAsSaved(row: SnapshotRow, saved: SavedSnapshot): boolean {
  return (
    row.updatedAt === saved.updatedAt &&
    row.status === saved.status &&
    row.stateHash === saved.stateHash &&
    row.index === saved.index &&
    row.parent === saved.parent &&
    row.label === saved.label &&
    row.turnIndex === saved.turnIndex &&
    row.event === saved.event &&
    row.finishReason === saved.finishReason &&
    row.error === saved.error &&
    row.edit === saved.edit &&
    row.usage === saved.usage &&
    row.totals === saved.totals &&
    row.createdAt === saved.createdAt &&
    row.heartbeatAt === saved.heartbeatAt &&
    row.ttl === saved.ttl &&
    row.partialFrom === saved.partialFrom
  );
}

/** What has changed about a session. */
export function toSessionLine(session: SessionRow, saved: SavedSession | undefined): SessionLine {
  const { id, createdAt, updatedAt, title, metadata, head, inbox, forkedFrom, startedBy } = session;
  return {
    id,
    ...(saved === undefined ? { createdAt: iso(createdAt) } : {}),
    ...(updatedAt === saved?.updatedAt ? {} : { updatedAt: iso(updatedAt) }),
    ...(title === saved?.title ? {} : { title: title ?? null }),
    ...(metadata === saved?.metadata ? {} : { metadata: metadata ?? null }),
    ...(head === saved?.head ? {} : { head: head?.id ?? null }),
    ...(inbox === saved?.inbox ? {} : { inbox: inbox ? inbox.map(toLeft) : null }),
    ...(saved !== undefined || forkedFrom === undefined ? {} : { forkedFrom }),
    ...(saved !== undefined || startedBy === undefined ? {} : { startedBy }),
  };
}

function toLeft({ id, message, runId = '' }: SteeringMessage) {
  return { id, message, runId };
}

/** A snapshot without its state. */
export function toSnapshotLine(row: SnapshotRow): SnapshotLine {
  const { parent, index, createdAt, updatedAt, heartbeatAt, finishReason: finish, error } = row;
  return {
    id: row.id,
    ...(parent === undefined ? {} : { parent: parent.id }),
    ...(index < 0 ? {} : { index }),
    turnIndex: row.turnIndex,
    event: row.event,
    status: row.status,
    ...(finish === undefined ? {} : { finishReason: finish }),
    ...(error === undefined ? {} : { error: { ...error } }),
    ...(row.edit === undefined ? {} : { edit: row.edit }),
    ...(row.usage === undefined ? {} : { usage: row.usage }),
    ...(row.totals === undefined ? {} : { totals: row.totals }),
    ...(row.label === undefined ? {} : { label: row.label }),
    createdAt: iso(createdAt),
    updatedAt: iso(updatedAt),
    ...(heartbeatAt === undefined ? {} : { heartbeatAt: iso(heartbeatAt) }),
    ...(row.ttl === undefined ? {} : { ttl: row.ttl }),
    ...(row.partialFrom === undefined ? {} : { partialFrom: row.partialFrom }),
    stateHash: row.stateHash,
  };
}

let lastTime = 0;
let lastText = '1970-01-01T00:00:00.000Z';

/** Milliseconds as ISO 8601. The times of one line are mostly the same. */
export function iso(ms: number): string {
  if (ms !== lastTime) {
    lastText = new Date(ms).toISOString();
    lastTime = ms;
  }
  return lastText;
}
