import * as v from 'valibot';
import { jsonObject } from './json-value.ts';
import { state } from './state.ts';

/** What is known of a session without loading its snapshots. */
export const session = v.object({
  sessionId: v.string(),
  agent: v.string(),
  title: v.optional(v.string()),
  metadata: v.optional(jsonObject),
  /** The active tip; absent until the first turn has been saved. */
  headId: v.optional(v.string()),
  turnCount: v.number(),
  createdAt: v.string(),
  updatedAt: v.string(),
  /** The reserved id of the active turn or run. */
  running: v.optional(v.string()),
  /** The snapshot of another session that this one was forked from. */
  forkedFrom: v.optional(v.object({ sessionId: v.string(), snapshotId: v.string() })),
  /** The snapshot of another agent's session in which this one was started as a sub-agent. */
  startedBy: v.optional(
    v.object({ agent: v.string(), sessionId: v.string(), snapshotId: v.optional(v.string()) }),
  ),
  state: v.optional(state),
});

export interface SessionInfo extends v.InferOutput<typeof session> {}

/** One page of a list; `next` is the cursor of the following one. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next?: string;
}
