import * as v from 'valibot';
import { jsonValue } from './json-value.ts';

/** Whether and how an effect can be undone. */
export const undoStatus = v.picklist([
  'possible',
  'impossible',
  'done',
  'needed by another branch',
]);

export const plannedEffect = v.object({
  /** The tool, or the name that a step gave its undo function. */
  tool: v.string(),
  /** The sub-agent that made the call. */
  agent: v.optional(v.string()),
  /** The input that the call ran with. */
  input: v.optional(jsonValue),
  /** The result; absent if it is not known. */
  output: v.optional(jsonValue),
  /** The snapshot of the turn that made the call. */
  snapshotId: v.string(),
  /** When the call began, as ISO 8601. */
  at: v.string(),
  /** Whether and how it can be undone. */
  undo: undoStatus,
  /** Why it cannot be undone. */
  reason: v.optional(v.string()),
});

export const undoPlan = v.object({
  /** A hash of the head, the effects and their statuses. */
  id: v.string(),
  /** The session. */
  sessionId: v.string(),
  /** The snapshot that a restore would make the head. */
  snapshotId: v.string(),
  /** The effects: those that cannot be undone first, and then the newest first. */
  effects: v.array(plannedEffect),
});

/** Whether and how an effect can be undone. */
export type UndoStatus = v.InferOutput<typeof undoStatus>;
/** An effect in another system that happened after a snapshot. */
export interface PlannedEffect extends v.InferOutput<typeof plannedEffect> {}
/** The effects that a restore would undo. It is computed from the store each time; a restore takes its id. */
export interface UndoPlan extends v.InferOutput<typeof undoPlan> {}
