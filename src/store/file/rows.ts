import { WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { SessionState } from '../../session/session-state.ts';
import type { RunRequest, SteeringMessage } from '../contract/store.ts';
import type { Checkpoint, DeadRow, RunRow, SessionRow, SnapshotRow } from '../memory/tables.ts';
import type { StateDelta } from './state-delta.ts';

/*
 * Rows of the memory tables as JSON. Fields have the same names in both. Times are ISO 8601 in files and milliseconds in memory;
 * references are ids in files and rows in memory. A checksum covers each line, so the shape of a line is not checked again.
 */
const times: ReadonlySet<string> = new Set(['createdAt', 'updatedAt', 'heartbeatAt']);
const references: ReadonlySet<string> = new Set(['parent', 'head', 'base']);

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

/** The fields of a snapshot that may be absent. */
const optionalFields = [
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
] as const satisfies readonly (keyof SnapshotRow)[];

export const snapshotFields = [
  'index',
  'turnIndex',
  'event',
  'status',
  'createdAt',
  'updatedAt',
  ...optionalFields,
  'stateHash',
] as const satisfies readonly (keyof SnapshotRow)[];

export const runFields = [
  'attempt',
  'worker',
  'ttl',
  'heartbeatAt',
  'request',
  'stopping',
  'base',
  'crashes',
] as const satisfies readonly (keyof RunRow)[];

/** The values of some fields of a row as the journal has them. */
export type Saved = readonly unknown[];

/** The current values of some fields. */
export function toSaved<Row>(row: Row, fields: readonly (keyof Row)[]): Saved {
  return fields.map((field) => row[field]);
}

/** Whether fields are as they were saved. */
function isAsSaved<Row>(row: Row, fields: readonly (keyof Row)[], saved: Saved): boolean {
  return fields.every((field, at) => row[field] === saved[at]);
}

/** The fields that differ from the saved ones, or all that are present. A field that was removed is `null`. */
export function toChange<Row>(
  row: Row,
  fields: readonly (keyof Row & string)[],
  saved: Saved = [],
): Record<string, unknown> {
  const change: Record<string, unknown> = {};
  for (const [at, field] of fields.entries()) {
    const value = row[field];
    if (value !== saved[at]) change[field] = value === undefined ? null : toJson(field, value);
  }
  return change;
}

/** Sets the fields of a change. `rowOf` finds a snapshot by its id. */
export function applyChange<Row extends object>(
  row: Row,
  change: Readonly<Record<string, unknown>>,
  fields: readonly (keyof Row & string)[],
  rowOf: (id: string) => SnapshotRow | undefined,
): void {
  const target = row as Record<string, unknown>;
  for (const field of fields) {
    const value = change[field];
    if (value === null) delete target[field];
    else if (references.has(field) && value !== undefined) target[field] = rowOf(String(value));
    else if (value !== undefined) target[field] = fromJson(field, value);
  }
}

function toJson(field: string, value: unknown): unknown {
  if (times.has(field)) return iso(value as number);
  return references.has(field) ? (value as SnapshotRow).id : value;
}

function fromJson(field: string, value: unknown): unknown {
  return times.has(field) ? Date.parse(String(value)) : value;
}

/** Loads the states of rows that do not have them in memory. */
export interface StateSource {
  /** Sets the state of each row that lacks it. */
  loadStates(): void;
}

/** A snapshot of the file store. Its state is unloaded when other sessions need the memory, and read again on demand. */
export class FileRow implements SnapshotRow {
  readonly id: string;
  readonly session: SessionRow;
  declare parent: SnapshotRow | undefined;
  declare index: number;
  declare turnIndex: number;
  declare event: SnapshotRow['event'];
  declare status: SnapshotRow['status'];
  declare finishReason?: NonNullable<SnapshotRow['finishReason']>;
  declare error?: NonNullable<SnapshotRow['error']>;
  declare edit?: NonNullable<SnapshotRow['edit']>;
  declare usage?: NonNullable<SnapshotRow['usage']>;
  declare totals?: NonNullable<SnapshotRow['totals']>;
  declare label?: string;
  declare createdAt: number;
  declare updatedAt: number;
  declare heartbeatAt?: number;
  declare ttl?: number;
  declare stateHash: string;
  declare partialFrom?: number;
  /** The hashes of its artifacts in the journal. */
  artifacts: readonly string[] = noArtifacts;
  #saved: Saved | undefined;
  #savedHash: string | undefined;
  #source: StateSource | undefined;
  #state: SessionState | undefined;

  constructor({ id, session, ...fields }: Omit<SnapshotRow, 'state'>) {
    this.id = id;
    this.session = session;
    // With the state, where there is one: the setter takes it.
    Object.assign(this, fields);
  }

  get state(): SessionState {
    if (this.#state === undefined) this.#source?.loadStates();
    if (this.#state !== undefined) return this.#state;
    throw new WaymarkError('DATA_LOSS', `The journal lacks the state of snapshot "${this.id}".`);
  }

  set state(state: SessionState) {
    this.#state = state;
  }

  /** Whether its state is in memory. */
  get isLoaded(): boolean {
    return this.#state !== undefined;
  }

  /** Whether the journal has the row as it is. */
  get isSaved(): boolean {
    return this.#saved !== undefined && isAsSaved<SnapshotRow>(this, snapshotFields, this.#saved);
  }

  /** Whether the journal has the state that the row has. */
  get hasSavedState(): boolean {
    return this.#savedHash === this.stateHash;
  }

  /** Removes the fields that may be absent. */
  clear(): void {
    for (const field of optionalFields) delete this[field];
  }

  /** Notes that the journal has the row as it is. */
  settle(source: StateSource, artifacts: readonly string[]): void {
    this.#source = source;
    this.artifacts = artifacts;
    this.#saved = toSaved<SnapshotRow>(this, snapshotFields);
    this.#savedHash = this.stateHash;
  }

  /** Frees the memory of a state that the journal has. */
  unload(): void {
    if (this.hasSavedState) this.#state = undefined;
  }
}

const noArtifacts: readonly string[] = [];

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

/** A snapshot as it is from now on, with its state if that has changed. */
export type SnapshotLine = Readonly<Record<string, unknown>> & {
  readonly id: string;
  readonly index?: number;
  readonly state?: StateDelta;
};

/** One change of one session, complete or, when the line is cut short, not at all. */
export interface TreeLine {
  /** The changed fields. */
  readonly session: Readonly<Record<string, unknown>> & { readonly id: string };
  readonly snapshots?: readonly SnapshotLine[];
  /** States that were saved without being listed, and have been replaced. */
  readonly dropped?: readonly string[];
  /** The run that ends with this change. */
  readonly ended?: string;
  /** The results of runs under request ids. */
  readonly receipts?: readonly {
    readonly run: string;
    readonly at: string;
    readonly value: Json;
  }[];
  /** Runs that enter the dead-letter queue, and that leave it. */
  readonly dead?: readonly DeadLine[];
  readonly undead?: readonly string[];
}

interface DeadLine {
  readonly run: string;
  readonly since: string;
  readonly inputsDone: number;
  readonly request: RunRequest;
}

/** A run of the dead-letter queue as part of a line. */
export function toDeadLine({ runId, since, inputsDone, request }: DeadRow): DeadLine {
  return { run: runId, since: iso(since), inputsDone, request };
}

/** A snapshot without its state. */
export function toSnapshotLine(row: SnapshotRow): SnapshotLine {
  return { id: row.id, ...toChange(row, snapshotFields) };
}

/** A snapshot that a run was claimed from. If it was not listed, it may not be in the journal any more. */
const startFields = ['id', 'turnIndex', 'index', 'finishReason', 'totals'] as const;

/** The changes of a run. */
export type RunLine = Readonly<Record<string, unknown>> & {
  readonly base?: string;
  readonly checkpoint?: CheckpointLine;
  /** New durable steps, and new messages in the inbox. */
  readonly steps?: readonly { readonly key: string; readonly value?: Json }[];
  readonly inbox?: readonly SteeringMessage[];
};

/** The first line of the file of a run. */
export type RunHead = RunLine & {
  readonly agent: string;
  readonly owner?: string;
  readonly session: string;
  readonly run: string;
  readonly createdAt: string;
  readonly turnIndex: number;
  readonly start?: Pick<SnapshotRow, (typeof startFields)[number]>;
};

/** The state that a run has reached: that of a snapshot, or one that is written here. */
export interface CheckpointLine extends Omit<Checkpoint, 'state' | 'stateHash'> {
  readonly stateHash?: string;
  readonly state?: StateDelta;
  /** Artifacts that no snapshot has yet, by hash. */
  readonly artifacts?: Readonly<Record<string, Artifact>>;
}

/** The first line of a new run. */
export function toRunHead(run: RunRow): object {
  const { session, start } = run;
  return {
    ...session.scope,
    session: session.id,
    run: run.id,
    createdAt: iso(run.createdAt),
    turnIndex: run.turnIndex,
    ...(start === undefined ? {} : { start: toChange(start, startFields) }),
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
