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
export type Phase = 'loading' | 'ready' | 'sending' | 'running' | 'stopping';

/** A sub-agent at work on one tool call. */
export interface SubAgentView {
  /** Its name; of one that another sub-agent called, with that one's: `editor/writer`. */
  readonly agent: string;
  /** The `ref` of the tool call that it works on; `undefined` with a server of version 0.1. */
  readonly ref: string | undefined;
  /** What it has said so far, with its tool calls. */
  readonly messages: readonly MessageView[];
  /** The text of the answer that it is writing. */
  readonly text: string;
  /** The last status it sent. */
  readonly status: Json | undefined;
}

/** A conversation as a page shows it. Frozen in time: a change makes a new view, in which only what changed is new. */
export interface AgentView<Types extends AgentTypes = WireTypes> {
  readonly phase: Phase;
  readonly sessionId: string | undefined;
  readonly title: string | undefined;
  /** The snapshot that the next turn continues from. */
  readonly snapshotId: string | undefined;
  /** The reserved id of the turn or run that is being worked on. */
  readonly running: string | undefined;
  /**
   * The conversation to render, with what was just sent and what has come of the answer. Messages that have nothing to show
   * are left out; `transcript` has them all.
   */
  readonly messages: readonly MessageView[];
  /** The messages as they are stored, tool messages included. */
  readonly transcript: readonly Message[];
  /** The answer that is being written; also the last of `messages`. */
  readonly answer: MessageView | undefined;
  /** The text of that answer so far; empty when none is being written. */
  readonly text: string;
  /** The custom state, live. */
  readonly custom: Types['custom'] | undefined;
  /** The artifacts, live. */
  readonly artifacts: readonly Artifact[];
  /** What sub-agents say while the running turn waits for them, in the order they began; their answers stay in the tools. */
  readonly subAgents: readonly SubAgentView[];
  /** The last status that the running turn sent. */
  readonly status: Types['status'] | undefined;
  /** How the last turn ended. */
  readonly finishReason: FinishReason | undefined;
  readonly usage: Usage | undefined;
  /** The structured output of the last turn. */
  readonly output: Types['output'] | undefined;
  /** Why the last turn or call failed; gone with the next one. */
  readonly error: ErrorBody | undefined;
  /** Tool calls that wait for an answer. */
  readonly interrupts: readonly WaitingInterrupt[];
  /** How often the running turn was taken over by another process. */
  readonly takeovers: number;
  /** All snapshots of the session, without their states; empty until asked for. */
  readonly timeline: readonly SnapshotOf<Types>[];
  /** An older snapshot that is being looked at, with its state; nothing is changed by looking. */
  readonly past: SnapshotOf<Types> | undefined;
}

/** A view of nothing yet. */
export function emptyView<Types extends AgentTypes>(
  change: Partial<AgentView<Types>> = {},
): AgentView<Types> {
  return {
    phase: 'ready',
    sessionId: undefined,
    title: undefined,
    snapshotId: undefined,
    running: undefined,
    messages: [],
    transcript: [],
    answer: undefined,
    text: '',
    custom: undefined,
    artifacts: [],
    subAgents: [],
    status: undefined,
    finishReason: undefined,
    usage: undefined,
    output: undefined,
    error: undefined,
    interrupts: [],
    takeovers: 0,
    timeline: [],
    past: undefined,
    ...change,
  };
}
