import type { ToolRequestPart } from '../../protocol/message.ts';

/** A turn that waits for the answer of a person, as passed to `onInterrupt`. */
export interface InterruptEvent {
  /** The name of the agent. */
  readonly agent: string;
  /** The owner of the session. */
  readonly owner?: string;
  /** The session. */
  readonly sessionId: string;
  /** The run whose turn was interrupted; with the snapshots of every turn, also the snapshot. The same in every attempt to tell. */
  readonly runId: string;
  /** The tool calls that wait, as they are stored. */
  readonly requests: readonly ToolRequestPart[];
}
