import type { AgentConnection, StateOf, WireTypes } from '../../api/types.ts';
import { failedPrecondition, hasStatus, WaymarkError } from '../../core/error.ts';
import type { ToolRequestPart } from '../../protocol/message.ts';
import { pendingInterrupts } from '../../protocol/messages.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import type { Chunk, Input, Output } from '../../protocol/turn.ts';
import type { AgentAccess } from '../source/agent-access.ts';
import {
  agentReader,
  findSnapshot,
  lookUpSession,
  noSession,
  readTimeline,
} from '../source/find.ts';
import { count } from '../text/format.ts';

interface Place {
  readonly sessionId?: string | undefined;
  readonly snapshotId?: string | undefined;
  /** Only for an agent without a store. */
  readonly state?: State | undefined;
  /** The next turn continues from the snapshot, even where it is not the head of its session. */
  readonly atSnapshot?: boolean;
}

/** A conversation with an agent, in one session at a time. */
export class Conversation {
  readonly agent: AgentAccess;
  /** The agent has a store, so there are snapshots to restore. */
  readonly isKept: boolean;
  /** Where the next turn continues; `{}` starts a new session. */
  place: Place = {};
  /** Whether the last turn was saved. A turn that is stopped before the agent accepts it is not. */
  isLastSaved = false;
  #running: AgentConnection | undefined;

  constructor(agent: AgentAccess, isKept: boolean) {
    this.agent = agent;
    this.isKept = isKept;
  }

  get isRunning(): boolean {
    return this.#running !== undefined;
  }

  /** Runs one turn on a new connection, so that the session is free for a restore between turns. */
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

  /** Stops the running turn; the partial answer is kept. */
  stop(): void {
    this.#running?.abort();
  }

  /** Adds a text to the running turn; `false` if the turn has ended or takes none. */
  async steer(text: string): Promise<boolean> {
    try {
      await this.#running?.steer(text);
      return this.#running !== undefined;
    } catch (error) {
      if (hasStatus(error, 'FAILED_PRECONDITION')) return false;
      throw error;
    }
  }

  async detach(): Promise<void> {
    await this.#running?.detach();
  }

  /** Restores the snapshot some turns earlier; later turns stay as a branch. */
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
        `Cannot go back ${count(turns, 'turn')}: this is turn ${(here?.turnIndex ?? -1) + 1}. /new starts a new session.`,
      );
    }
    await this.agent.restore(target.snapshotId);
    this.place = { sessionId, snapshotId: target.snapshotId };
    const restored = await this.agent.getSnapshot({ snapshotId: target.snapshotId });
    return (restored ?? target) as Snapshot;
  }

  /** Forks: continues in a new session that shares the history so far. Resolves to its id. */
  async branch(): Promise<string> {
    const { sessionId, snapshotId } = await this.agent.fork(this.#kept().snapshotId);
    this.place = { sessionId, snapshotId };
    return sessionId;
  }

  /**
   * Continues a session from its head. `make`: an unknown id starts a session under it. Then only a generated id can be
   * shortened, as "trip" must not continue "trip-2".
   */
  async open(given: string, make = false): Promise<void> {
    const exact = await this.agent.getSession(given);
    const canShorten = !make || /^[0-9a-f]{4}[0-9a-f-]*$/.test(given);
    const session =
      exact ??
      (canShorten ? (await lookUpSession([agentReader(this.agent)], given))?.session : undefined);
    if (session === undefined && !make) throw noSession(given, '/sessions lists them.');
    this.place = { sessionId: session?.sessionId ?? given, snapshotId: session?.headId };
  }

  /** Continues from any snapshot; with a session, only from a snapshot of that session. */
  async openSnapshot(given: string, sessionId?: string): Promise<void> {
    const { snapshot } = await findSnapshot([this.agent], given);
    const { snapshotId } = snapshot;
    if (sessionId !== undefined && !snapshot.sessionId.startsWith(sessionId)) {
      throw new WaymarkError(
        'NOT_FOUND',
        `There is no snapshot "${snapshotId}" in session "${sessionId}". To open it in its own session, leave out --session.`,
      );
    }
    this.place = { sessionId: snapshot.sessionId, snapshotId, atSnapshot: true };
  }

  async state(): Promise<State | undefined> {
    if (!this.isKept) return this.place.state;
    const { snapshotId } = this.place;
    if (snapshotId === undefined) return undefined;
    const snapshot = await this.agent.getSnapshot({ snapshotId });
    return snapshot?.state as State | undefined;
  }

  /** The interrupted tool calls that are not answered yet. */
  async interrupts(): Promise<readonly ToolRequestPart[]> {
    return pendingInterrupts((await this.state())?.messages ?? []);
  }

  #kept(): { readonly sessionId: string; readonly snapshotId: string } {
    if (!this.isKept) {
      throw failedPrecondition(
        `Agent "${this.agent.name}" has no store, so there are no snapshots to restore.`,
      );
    }
    const { sessionId, snapshotId } = this.place;
    if (sessionId === undefined || snapshotId === undefined) {
      throw failedPrecondition('This session has no turns yet.');
    }
    return { sessionId, snapshotId };
  }

  #init(): Parameters<AgentAccess['streamBidi']>[0] {
    const { sessionId, snapshotId, state, atSnapshot } = this.place;
    // It comes from an output of this agent, so it has the agent's type.
    if (!this.isKept) return state === undefined ? {} : { state: state as StateOf<WireTypes> };
    if (atSnapshot && snapshotId !== undefined) return { snapshotId };
    return sessionId === undefined ? {} : { sessionId };
  }

  #follow({ sessionId, snapshotId, state, finishReason }: Output): void {
    this.isLastSaved = this.isKept
      ? snapshotId !== undefined && snapshotId !== this.place.snapshotId
      : (state?.messages?.length ?? 0) > (this.place.state?.messages?.length ?? 0);
    // A background run cannot be continued before it has ended.
    const kept = finishReason === 'detached' ? undefined : snapshotId;
    this.place = {
      sessionId,
      snapshotId: kept ?? this.place.snapshotId,
      state: state ?? this.place.state,
    };
  }
}
