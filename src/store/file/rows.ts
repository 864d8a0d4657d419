import type { Json } from '../../core/json/json.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { SteeringMessage } from '../contract/store.ts';
import type { EventBatch } from '../memory/kept-events.ts';
import { iso } from '../memory/reading.ts';
import type { Checkpoint, EffectRow, RunRow, SessionRow, SnapshotRow } from '../memory/tables.ts';
import type { StateDelta } from './state-delta.ts';

/*
 * Rows of the memory tables as JSON. Fields have the same names in both. Times are ISO 8601 in files and milliseconds in memory;
 * references are ids in files and rows in memory. A checksum covers each line, so the shape of a line is not checked again.
 */
const times: ReadonlySet<string> = new Set([
  'createdAt',
  'updatedAt',
  'heartbeatAt',
  'at',
  'since',
]);
const references: ReadonlySet<string> = new Set(['parent', 'head', 'base', 'start']);

export const sessionFields = [
  'createdAt',
  'updatedAt',
  'title',
  'metadata',
  'head',
  'inbox',
  'forkedFrom',
  'startedBy',
] as const satisfies readonly (keyof SessionRow)[];

export const snapshotFields = [
  'index',
  'turnIndex',
  'event',
  'status',
  'createdAt',
  'updatedAt',
  'parent',
  'finishReason',
  'error',
  'edit',
  'usage',
  'totals',
  'label',
  'heartbeatAt',
  'ttl',
  'partialFrom',
  'stateHash',
] as const satisfies readonly (keyof SnapshotRow)[];

export const runFields = [
  'createdAt',
  'turnIndex',
  'start',
  'attempt',
  'worker',
  'ttl',
  'heartbeatAt',
  'request',
  'stopping',
  'base',
  'crashes',
] as const satisfies readonly (keyof RunRow)[];

export const requestFields = ['runId', 'digest', 'at', 'receipt'] as const;

export const deadFields = ['runId', 'since', 'inputsDone', 'request'] as const;

/** The fields of a row as the journal has them. */
export type Saved<Row> = { readonly [Field in keyof Row]?: unknown };

/** The fields that differ from a saved row, or all that are present. A field that was removed is `null`. */
export function toChange<Row extends object>(
  row: Row,
  fields: readonly (keyof Row & string)[],
  saved: Saved<Row> = {},
): Record<string, unknown> {
  const change: Record<string, unknown> = {};
  for (const field of fields) {
    const value = row[field];
    if (value !== saved[field]) change[field] = value === undefined ? null : toJson(field, value);
  }
  return change;
}

/** Sets the fields of a change. `rowOf` finds a snapshot by its id. */
export function applyChange<Row extends object>(
  row: Row,
  change: Readonly<Record<string, unknown>>,
  fields: readonly (keyof Row & string)[],
  rowOf: (id: string) => SnapshotRow,
): Row {
  const target = row as Record<string, unknown>;
  for (const field of fields) {
    const value = change[field];
    if (value === null) delete target[field];
    else if (references.has(field) && value !== undefined) target[field] = rowOf(String(value));
    else if (value !== undefined) target[field] = fromJson(field, value);
  }
  return row;
}

function toJson(field: string, value: unknown): unknown {
  if (times.has(field)) return iso(value as number);
  return references.has(field) ? (value as SnapshotRow).id : value;
}

function fromJson(field: string, value: unknown): unknown {
  return times.has(field) ? Date.parse(String(value)) : value;
}

/** The first line of the journal of a session and its forks. */
export interface TreeHead {
  readonly waymark: number;
  /** New whenever the file is rewritten. */
  readonly id: string;
  readonly agent: string;
  readonly owner?: string;
  /** The session that the folder is named after. */
  readonly session: string;
}

/** An artifact in the journal. */
export interface ArtifactLine {
  readonly artifact: string;
  /** The saved files that it names. */
  readonly files: readonly string[];
  /** The trees that it names. */
  readonly trees?: readonly string[];
  readonly content: Artifact;
}

/** Some fields of a row. */
type Fields = Readonly<Record<string, unknown>>;

/** The changes of a snapshot, or all of a new one. */
export type SnapshotLine = Fields & { readonly id: string; readonly state?: StateDelta };

/** A request id of a run. */
export type RequestLine = Fields & { readonly key: string };

/** The changes of the open run of a session, or all of a new one. */
export type RunLine = Fields & {
  readonly id: string;
  readonly checkpoint?: CheckpointLine;
  /** New durable steps, and new messages in the inbox. */
  readonly steps?: readonly { readonly key: string; readonly value?: Json }[];
  readonly inbox?: readonly SteeringMessage[];
};

/** The state that a run has reached: that of its base, or one that is written here. */
export interface CheckpointLine extends Omit<Checkpoint, 'state' | 'stateHash'> {
  readonly stateHash?: string;
  readonly state?: StateDelta;
}

/** One change of one session, complete or, when the line is cut short, not at all. */
export interface TreeLine {
  /** Whether the line has what was left when the journal was rewritten. */
  readonly kept?: true;
  /** The changed fields. */
  readonly session: Fields & { readonly id: string };
  readonly snapshots?: readonly SnapshotLine[];
  /** States that were saved without being listed, and have been replaced. */
  readonly dropped?: readonly string[];
  /** New events of runs. */
  readonly events?: readonly (EventBatch & { readonly run: string })[];
  /** The run that ends with this change, and when, if it has events. */
  readonly ended?: string;
  readonly endedAt?: string;
  readonly run?: RunLine;
  /** The runs that were claimed under request ids, and what they came to. */
  readonly requests?: readonly RequestLine[];
  /** Runs that enter the dead-letter queue, and that leave it. */
  readonly dead?: readonly Fields[];
  readonly undead?: readonly string[];
  /** New and changed effects, and the keys of those that were removed. */
  readonly effects?: readonly EffectRow[];
  readonly noEffects?: readonly string[];
}

/** The events of a run as part of a line. */
export function toEventLines(
  run: string,
  batches: readonly EventBatch[] = [],
): NonNullable<TreeLine['events']> {
  return batches.map((batch) => ({ run, ...batch }));
}

/** A line without fields that are undefined or empty lists. */
export function toTreeLine(
  line: { readonly [Field in keyof TreeLine]: TreeLine[Field] | undefined },
): TreeLine {
  const isThere = (value: unknown): boolean =>
    Array.isArray(value) ? value.length > 0 : value !== undefined;
  return Object.fromEntries(
    Object.entries(line).filter(([, value]) => isThere(value)),
  ) as unknown as TreeLine;
}
