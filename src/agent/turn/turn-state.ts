import { WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import type { Message } from '../../protocol/message.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { FinishReason, Input, Output, Usage } from '../../protocol/turn.ts';
import type { History } from '../../session/history.ts';
import type { EventLog } from '../persistence/event-log.ts';
import type { TurnInfo } from '../spec/handler.ts';
import type { TurnBase } from '../spec/turn-store.ts';

export interface Turn {
  readonly info: TurnInfo;
  readonly input: Input;
  /** Its input is in the state already: a second attempt continues from a checkpoint, or the turn was steered. */
  continued: boolean;
  /** Whether the custom state has been sent as a whole in this turn. */
  customSent: boolean;
  /** The named artifacts that have been sent in this turn, as they were sent last. */
  readonly artifactsSent: Map<string, Artifact>;
  /** The turn function did not return in time after a stop, and the turn ended without it. */
  hasTimedOut: boolean;
  usage: Usage;
  output?: Json;
  toolCalls: number;
  /** How many messages of its generate call are in the state already. */
  generated: number;
  /** How many messages the turn added after its input before its present generate call: the index of the next one. */
  firstIndex: number;
  /** Whether there are snapshots within it, which are not the head before it has ended. */
  hasSnapshots: boolean;
  /** Its end was refused because of messages in its inbox. */
  isSteered: boolean;
  toolIterations: number;
  readonly snapshotIds: string[];
  /** How often each tool was called at each place, for keys that are the same on a second attempt. */
  readonly toolKeys: Map<string, number>;
  /** Names the client-held state whose interrupt this turn answers. */
  answeredKey?: string;
}

export type Outcome =
  | { readonly kind: 'done'; readonly finishReason: FinishReason; readonly output?: Json }
  /** Not ended: messages were added to it, and the model has to answer them. */
  | { readonly kind: 'steered' }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'failed'; readonly error: WaymarkError }
  | { readonly kind: 'lost' }
  /** Another worker ended the run, with this output. */
  | { readonly kind: 'elsewhere'; readonly output: Output };

/** Whether a turn takes the messages of its inbox before it ends so. One that waits for an answer does not. */
export function waitsForSteering(outcome: Outcome): boolean {
  return outcome.kind === 'done' && outcome.finishReason !== 'interrupted';
}

/** Prepares a turn for another generate call over the state as it is, after messages were added to it. */
export function continueTurn(turn: Turn, added: number): void {
  turn.continued = true;
  turn.firstIndex += turn.generated + added;
  turn.generated = 0;
}

/** How many messages a state has that the turn of an input added after its input. */
export function countAdded(history: History, { message }: Input): number {
  const isBefore = ({ role, metadata }: Message): boolean =>
    message === undefined
      ? metadata?.answered !== undefined
      : role === 'user' && metadata?.steered === undefined;
  for (let at = history.length - 1; at >= 0; at--) {
    const found = history.at(at);
    // The first message of a turn that answers an interrupt belongs to the turn.
    if (found && isBefore(found)) return history.length - at - (message === undefined ? 0 : 1);
  }
  return 0;
}

/** The last message that is not a tool's, and the tool messages after it: enough to find open tool requests. */
export function lastRound(history: History): readonly Message[] {
  let from = history.length - 1;
  while (from > 0 && history.at(from)?.role === 'tool') from--;
  return history.toArray(Math.max(0, from));
}

export function lostError(runId: string): WaymarkError {
  return new WaymarkError(
    'ABORTED',
    `Another worker has taken over run "${runId}", or its session, so this process no longer runs it. Look the run up by its id.`,
    { details: { snapshotId: runId } },
  );
}

/** The run that is being worked on: one per turn, or one for all inputs that were queued when the caller detached. */
export interface ActiveRun {
  readonly runId: string;
  readonly turnBase: TurnBase;
  readonly log: EventLog;
  /** Stops renewing the run's claim. */
  readonly stopHeartbeat: () => void;
  readonly resumeHeartbeat: () => void;
  readonly steering: RunSteering;
  /** The idempotency keys that the run was claimed with. */
  readonly keys: readonly string[];
  /** For a detached run: how many inputs are done, whether the run has ended, and why its end could not be saved. */
  detached?: {
    inputsDone: number;
    /** Its final snapshot, if the run has ended together with its last turn. */
    ended?: Snapshot;
    over?: boolean;
    trouble?: unknown;
  };
  /** Called for each new checkpoint and durable step. */
  onProgress?: () => void;
}

export interface RunSteering {
  /** Whether there may be messages that the turn has not taken. */
  isHinted: boolean;
  /** Settles when a hint that has just come is looked up in the store. */
  looking?: Promise<void> | undefined;
  /** The messages of the inbox that the state has, each by its run and id. */
  readonly taken: Set<string>;
  /** Another worker had the run: its last checkpoint may have messages of the inbox, which was not read yet. */
  isUnread?: boolean;
}

/** The usage of a turn or an invocation; `undefined` if it used nothing. */
export function usageOf({ usage }: { readonly usage: Usage }): Usage | undefined {
  return Object.keys(usage).length > 0 ? usage : undefined;
}
