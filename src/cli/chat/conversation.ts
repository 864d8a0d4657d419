import type { AgentConnection, StateOf, WireTypes } from '../../agent/spec/agent.ts';
import { WaymarkError } from '../../core/error.ts';
import { fitsLookup } from '../../protocol/lookup.ts';
import type { ToolRequestPart } from '../../protocol/message.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import { pendingInterrupts } from '../../protocol/tool-round.ts';
import type { Chunk, Input, Output } from '../../protocol/turn.ts';
import type { AgentAccess } from '../source/agent-access.ts';
import { findSnapshot } from '../source/find-snapshot.ts';
import { readTimeline } from '../source/read-timeline.ts';

/** Where a conversation stands. */
interface Place {
  readonly sessionId?: string | undefined;
  readonly snapshotId?: string | undefined;
  /** Of an agent without a store. */
  readonly state?: State | undefined;
  /** Whether the next turn goes on from the snapshot, even where that is not the head of its session. */
  readonly atSnapshot?: boolean;
}

/** One conversation with an agent, at one place at a time. */
export class Conversation {
  readonly agent: AgentAccess;
  readonly isKept: boolean;
  #place: Place = {};
  #running: AgentConnection | undefined;

  /** `isKept`: the agent has a store, so that there are snapshots to come back to. */
  constructor(agent: AgentAccess, isKept: boolean) {
    this.agent = agent;
    this.isKept = isKept;
  }

  get sessionId(): string | undefined {
    return this.#place.sessionId;
  }

  /** The snapshot to come back to. */
  get snapshotId(): string | undefined {
    return this.#place.snapshotId;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** One turn. Each has a connection of its own, so that between turns nothing is in the way of going back. */
  async turn(input: Input, onChunk: (chunk: Chunk) => void): Promise<Output> {
    const connection = this.agent.streamBidi(this.#init());
    this.#running = connection;
    try {
      await connection.send(input);
      for await (const chunk of connection.turn()) onChunk(chunk as Chunk);
      const output = (await connection.output()) as Output;
      this.#follow(output);
      return output;
    } finally {
      this.#running = undefined;
      connection.close();
    }
  }

  /** Stops the turn that runs; what the model had said is kept. */
  stop(): void {
    this.#running?.abort();
  }

  /** Lets the turn that runs go on in the background. */
  async detach(): Promise<void> {
    await this.#running?.detach();
  }

  /** Goes back some turns: the head of the session moves there, and what came after stays as a branch. */
  async back(turns: number): Promise<Snapshot> {
    const { sessionId, snapshotId } = this.#kept();
    const timeline = await readTimeline(this.agent, sessionId);
    const byId = new Map(timeline.map((each) => [each.snapshotId, each]));
    const here = byId.get(snapshotId);
    let target = here;
    while (target && here && target.turnIndex > here.turnIndex - turns) {
      target = byId.get(target.parentId ?? '');
    }
    if (target === undefined) {
      throw new WaymarkError(
        'OUT_OF_RANGE',
        `This is turn ${(here?.turnIndex ?? -1) + 1}, so there is no way ${turns} back. /new starts a new session.`,
      );
    }
    await this.agent.restore(target.snapshotId);
    this.#place = { sessionId, snapshotId: target.snapshotId };
    const restored = await this.agent.getSnapshot({ snapshotId: target.snapshotId });
    return (restored ?? target) as Snapshot;
  }

  /** Goes on in a new session that shares the history up to here. */
  async branch(): Promise<Snapshot> {
    const first = (await this.agent.fork(this.#kept().snapshotId)) as Snapshot;
    this.#place = { sessionId: first.sessionId, snapshotId: first.snapshotId };
    return first;
  }

  /** Goes to a new session. */
  restart(): void {
    this.#place = {};
  }

  /** Goes to where a session stands; `make`: one that is not there begins under this id. */
  async open(sessionId: string, make = false): Promise<void> {
    const session = await this.agent.getSession(sessionId);
    if (session === undefined && !make) {
      throw new WaymarkError('NOT_FOUND', `There is no session "${sessionId}".`);
    }
    this.#place = { sessionId, snapshotId: session?.headId };
  }

  /** Goes to a snapshot, wherever in its session it is; given a session, only to one of that session. */
  async openSnapshot(snapshotId: string, sessionId?: string): Promise<void> {
    const { snapshot } = await findSnapshot([this.agent], snapshotId);
    if (!fitsLookup({ snapshotId, sessionId }, snapshot.sessionId)) {
      throw new WaymarkError(
        'NOT_FOUND',
        `There is no snapshot "${snapshotId}" in session "${sessionId}". Leave out --session to open it in its own session.`,
      );
    }
    this.#place = { sessionId: snapshot.sessionId, snapshotId, atSnapshot: true };
  }

  /** The messages so far. */
  async state(): Promise<State | undefined> {
    if (!this.isKept) return this.#place.state;
    const { snapshotId } = this.#place;
    if (snapshotId === undefined) return undefined;
    const snapshot = await this.agent.getSnapshot({ snapshotId });
    return snapshot?.state as State | undefined;
  }

  /** The tool calls that wait for an answer. */
  async interrupts(): Promise<readonly ToolRequestPart[]> {
    return pendingInterrupts((await this.state())?.messages ?? []);
  }

  #kept(): { readonly sessionId: string; readonly snapshotId: string } {
    if (!this.isKept) {
      throw new WaymarkError(
        'FAILED_PRECONDITION',
        `Agent "${this.agent.name}" has no store, so it keeps nothing to go back to.`,
      );
    }
    const { sessionId, snapshotId } = this.#place;
    if (sessionId === undefined || snapshotId === undefined) {
      throw new WaymarkError('FAILED_PRECONDITION', 'Nothing has been said yet.');
    }
    return { sessionId, snapshotId };
  }

  #init(): Parameters<AgentAccess['streamBidi']>[0] {
    const { sessionId, snapshotId, state, atSnapshot } = this.#place;
    // Read from an output of this agent, so it has its type.
    if (!this.isKept) return state === undefined ? {} : { state: state as StateOf<WireTypes> };
    if (atSnapshot && snapshotId !== undefined) return { snapshotId };
    return sessionId === undefined ? {} : { sessionId };
  }

  #follow({ sessionId, snapshotId, state, finishReason }: Output): void {
    // A run in the background cannot be gone on from before it has ended.
    const kept = finishReason === 'detached' ? undefined : snapshotId;
    this.#place = {
      sessionId,
      snapshotId: kept ?? this.#place.snapshotId,
      state: state ?? this.#place.state,
    };
  }
}
