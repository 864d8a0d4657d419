import * as v from 'valibot';
import { jsonObject } from './json-value.ts';
import { messageRange, state } from './state.ts';

export const session = v.object({
  /** The id. */
  sessionId: v.string(),
  /** The agent it belongs to. */
  agent: v.string(),
  /** The title. */
  title: v.optional(v.string()),
  /** Your own facts about the session. */
  metadata: v.optional(jsonObject),
  /** The active tip; absent until the first turn has been saved. */
  headId: v.optional(v.string()),
  /** How many turns the active branch has. */
  turnCount: v.number(),
  /** When it was created, as ISO 8601. */
  createdAt: v.string(),
  /** When it was last changed, as ISO 8601. */
  updatedAt: v.string(),
  /** The reserved id of the active turn or run. */
  running: v.optional(v.string()),
  /** The snapshot of another session that this one was forked from. */
  forkedFrom: v.optional(v.object({ sessionId: v.string(), snapshotId: v.string() })),
  /** The snapshot of another agent's session in which this one was started as a sub-agent. */
  startedBy: v.optional(
    v.object({ agent: v.string(), sessionId: v.string(), snapshotId: v.optional(v.string()) }),
  ),
  /** The state of the head; lists leave it out. */
  state: v.optional(state),
  /** Which of the messages the state has, where a page of them was read. */
  messageRange: v.optional(messageRange),
});

/** A session without its snapshots. */
export interface SessionInfo extends v.InferOutput<typeof session> {}

/** One page of a list; `next` is the cursor of the following one. */
export interface Page<Item> {
  /** The items of this page. */
  readonly items: readonly Item[];
  /** Pass it as `cursor` to get the next page; absent on the last. */
  readonly next?: string;
}
