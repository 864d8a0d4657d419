import * as v from 'valibot';
import { jsonValue } from './json-value.ts';

/** The turn that an entry came from. */
export interface MemoryOrigin {
  /** The agent. */
  readonly agent: string;
  /** The session. */
  readonly sessionId: string;
  /** The snapshot that the turn was saved with. */
  readonly snapshotId: string;
  /** The index of the message whose tool call wrote it. */
  readonly message: number;
}

/** An entry, with the version that is visible. */
export interface MemoryEntry<Value = unknown> {
  /** The id of the entry. */
  readonly id: string;
  /** The content. */
  readonly value: Value;
  /** The id of the version. */
  readonly version: string;
  /** When the version was saved, as ISO 8601. */
  readonly createdAt: string;
  /** The turn that wrote the version. Absent if it was added outside of a turn, or by another owner. */
  readonly source?: MemoryOrigin;
}

/** An entry that a search has found. */
export interface MemoryHit<Value = unknown> extends MemoryEntry<Value> {
  /** From 0 to 1: how much of the query it has. */
  readonly score: number;
}

/** A version in the history of an entry; without `value`, the entry was forgotten. */
export interface MemoryVersionInfo<Value = unknown> extends Omit<MemoryEntry<Value>, 'value'> {
  /** The content. */
  readonly value?: Value;
}

/** What a turn knew from memory, and what it has learned. */
export interface MemoryOfTurn<Value = unknown> {
  /** The entries in its prompt, in the versions of that time. Those that have been deleted since are left out. */
  readonly given: readonly MemoryEntry<Value>[];
  /** How many of the entries in its prompt have been deleted since. */
  readonly deleted: number;
  /** The versions that the turn has written; those without a value forgot an entry. */
  readonly learned: readonly MemoryVersionInfo<Value>[];
}

const origin = v.object({
  agent: v.string(),
  sessionId: v.string(),
  snapshotId: v.string(),
  message: v.number(),
});
const version = {
  id: v.string(),
  version: v.string(),
  createdAt: v.string(),
  source: v.optional(origin),
};

/** An entry. */
export const memoryEntry = v.object({ ...version, value: jsonValue });
/** A version of an entry; without `value`, the entry was forgotten. */
const memoryVersion = v.object({ ...version, value: v.optional(jsonValue) });
/** A page of entries; those of a search have a score. */
export const memoryPage = v.object({
  items: v.array(v.object({ ...memoryEntry.entries, score: v.optional(v.number()) })),
  next: v.optional(v.string()),
});
/** The versions of an entry, oldest first. */
export const memoryHistory = v.object({ items: v.array(memoryVersion) });
/** What a turn knew, and what it has learned. */
export const memoryOfTurn = v.object({
  given: v.array(memoryEntry),
  deleted: v.number(),
  learned: v.array(memoryVersion),
});
/** The content of an entry. */
export const memoryWrite = v.object({ value: jsonValue });
