import type { AgentTypes, SnapshotOf, WireTypes } from '../api/types.ts';
import type { ErrorBody } from '../core/error.ts';
import type { Json } from '../core/json/json.ts';
import type { Message } from '../protocol/message.ts';
import type { Artifact } from '../protocol/state.ts';
import type { FinishReason, Usage } from '../protocol/turn.ts';
import type { WaitingInterrupt } from './interrupts.ts';
import type { MessageView } from './message-view.ts';

/**
 * The current phase. `loading`: the session is being read. `ready`: nothing runs. `sending`: sent, and nothing has come
 * yet. `running`: a turn is being worked on and followed. `stopping`: it was asked to stop.
 */
type Phase = 'loading' | 'ready' | 'sending' | 'running' | 'stopping';

/** A sub-agent at work on one tool call. */
export interface SubAgentView {
  /** Its name; of one that another sub-agent called, with that one's: `editor/writer`. */
  readonly agent: string;
  /** The `ref` of the tool call that it works on; `undefined` with a server of version 0.1. */
  readonly ref: string | undefined;
  /** Its messages so far, with its tool calls. */
  readonly messages: readonly MessageView[];
  /** The text of the answer that it is writing. */
  readonly text: string;
  /** The last status it sent. */
  readonly status: Json | undefined;
}

/** A conversation as a page shows it. Frozen in time: a change makes a new view, in which only what changed is new. */
export interface AgentView<Types extends AgentTypes = WireTypes> {
  /** `loading`, `ready`, `sending`, `running` or `stopping`. */
  readonly phase: Phase;
  /** The session. */
  readonly sessionId: string | undefined;
  /** The title of the session. */
  readonly title: string | undefined;
  /** The snapshot that the next turn continues from. */
  readonly snapshotId: string | undefined;
  /** The reserved id of the active turn or run. */
  readonly running: string | undefined;
  /**
   * The conversation to render, including the message that was just sent and the answer so far. Messages without
   * visible content are left out; `transcript` has all of them.
   */
  readonly messages: readonly MessageView[];
  /** The messages as they are stored, tool messages included. */
  readonly transcript: readonly Message[];
  /** How many earlier messages are not loaded; `loadEarlier` loads some of them. 0 unless `messages` limits the first load. */
  readonly earlier: number;
  /** The streaming answer; also the last of `messages`. */
  readonly answer: MessageView | undefined;
  /** The text of the streaming answer so far; empty if there is none. */
  readonly text: string;
  /** The custom state, live. */
  readonly custom: Types['custom'] | undefined;
  /** The artifacts, live. */
  readonly artifacts: readonly Artifact[];
  /** The streamed output of sub-agents while the turn waits for them, in the order they started. Afterwards their answers are in the tool calls. */
  readonly subAgents: readonly SubAgentView[];
  /** The last status that the running turn sent. */
  readonly status: Types['status'] | undefined;
  /** How the last turn ended. */
  readonly finishReason: FinishReason | undefined;
  /** Tokens of the last turn. */
  readonly usage: Usage | undefined;
  /** The structured output of the last turn. */
  readonly output: Types['output'] | undefined;
  /** The error of the last turn or call; cleared by the next one. */
  readonly error: ErrorBody | undefined;
  /** Messages added to the running turn that it has not picked up yet; after the turn has ended, those that it did not pick up. */
  readonly steering: readonly Message[];
  /** Tool calls with a pending interrupt. */
  readonly interrupts: readonly WaitingInterrupt[];
  /** How often the running turn was taken over by another process. */
  readonly takeovers: number;
  /** The snapshots of the session, without their states; empty unless requested. */
  readonly timeline: readonly SnapshotOf<Types>[];
  /** Whether there are snapshots before those of `timeline`; `loadEarlierSnapshots` loads some of them. */
  readonly hasEarlierSnapshots: boolean;
  /** The older snapshot that is viewed, with its state. Viewing changes nothing. */
  readonly past: SnapshotOf<Types> | undefined;
}
