import { invalid } from '../../core/error.ts';
import type { SnapshotEvent } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import type { Chunk, FinishReason } from '../../protocol/turn.ts';
import {
  hashState,
  isSameState,
  type SessionState,
  toPlainState,
} from '../../session/session-state.ts';
import type {
  Committed,
  CommitWrite,
  RequestOutcome,
  RunEvent,
  RunUsage,
  Spent,
  StateWrite,
} from '../../store/contract/store.ts';
import type { AgentSpec } from '../contract/spec.ts';
import { armDeadline } from './deadlines.ts';
import type { InvocationState } from './invocation-state.ts';
import { totalsOf } from './limits.ts';
import { loadedMemory, reserveExtraction, workLater } from './memory.ts';
import { noteInbox } from './steer.ts';
import { markingLost } from './stop.ts';
import {
  type ActiveRun,
  checkpointedAs,
  endedWith,
  type ListedState,
  savedAs,
  type Turn,
} from './turn-state.ts';

/** Writes a snapshot, and publishes its chunk after the commit. */
export async function commit(
  invocation: InvocationState,
  run: ActiveRun,
  chunk: Chunk,
  write: Omit<CommitWrite, keyof StateWrite | 'parentId' | 'turnIndex' | 'stateHash'>,
): Promise<Committed> {
  const { spec, scope, working, lineage, position, spending } = invocation;
  const { nextParentId: parentId } = lineage;
  const { turnIndex } = position;
  const { snapshotId } = write;
  let listed: ListedState | undefined;
  if (write.end && write.finishReason === 'interrupted') await armDeadline(invocation, snapshotId);
  const from = lineage.fallbackState.history.length;
  const memory = spec.memory && (await loadedMemory(invocation, run));
  if (memory !== undefined && write.end && write.status === 'succeeded') {
    reserveExtraction(invocation, memory);
  }
  const remembered = memory?.commit(write);
  const committed = await writeWithEvents(invocation, run, chunk, (events) => {
    // Read here: the state may change while earlier events are written.
    const stateHash = working.hash();
    if (write.listed !== false) {
      listed = { id: snapshotId, state: working.state };
    }
    const defaultTitle =
      turnIndex === 0 && write.event !== 'toolIterationEnd' ? titleFor(invocation) : undefined;
    return spending.alongWith(spec.store?.spend, (spend) =>
      spec.turnStore.commit(scope, run.turnBase, {
        ...stateWrite(invocation),
        ...write,
        ...spend,
        ...remembered,
        ...(parentId !== undefined && { parentId }),
        turnIndex,
        stateHash,
        ...(events && { events }),
        ...(defaultTitle !== undefined && { defaultTitle }),
      }),
    );
  });
  if (remembered !== undefined) memory?.saved(remembered);
  if (!write.end) run.onProgress?.();
  if (listed !== undefined) position.nextIndex++;
  if (write.status === 'succeeded') {
    invocation.lineage = savedAs(invocation.lineage, committed.base, listed);
    working.saved();
  }
  if (remembered?.memory?.versions.length) await workLater(invocation, { ...write, from });
  return committed;
}

/** Ends a run without a snapshot. */
export async function release(
  invocation: InvocationState,
  run: ActiveRun,
  chunk: Chunk,
  requests?: RequestOutcome,
): Promise<void> {
  const { turnStore } = invocation.spec;
  await writeWithEvents(invocation, run, chunk, (events) =>
    turnStore.release(run.turnBase, events, requests),
  );
}

/** Writes together with the events that the store does not have yet, and publishes the chunk after that. */
function writeWithEvents<Value>(
  { chunkSink }: InvocationState,
  { log }: ActiveRun,
  chunk: Chunk,
  write: (events: readonly RunEvent[] | undefined) => Promise<Value>,
): Promise<Value> {
  return log.takeAlong(async (unwritten) => {
    const event =
      Object.keys(chunk).length === 0 ? undefined : log.stage(chunk, chunkSink.shown(chunk));
    const value = await write(log.durable ? [...unwritten, ...(event ? [event] : [])] : undefined);
    if (event !== undefined) log.publishStaged(event);
    return value;
  });
}

/** The state to write, as a change of what was saved last. */
export function stateWrite({ lineage, working }: InvocationState): StateWrite {
  const { savedBase: base } = lineage;
  // An upgraded state did not come from the stored one by patches.
  const known = base !== undefined && base.state.custom === working.patchedFrom;
  return {
    ...(base && { base }),
    state: working.state,
    ...(known && working.customPatch.length > 0 && { customPatch: working.customPatch }),
  };
}

/** Stores the state reached so far with the run, for the worker that takes it over. */
export async function checkpoint(
  invocation: InvocationState,
  run: ActiveRun,
  midTurn: boolean,
): Promise<void> {
  const { spec, working } = invocation;
  const ref = run.turnBase.run;
  const { runs, spend: recorder } = spec.store ?? {};
  if (ref === undefined || runs === undefined) return;
  const inputsDone = run.detached?.inputsDone ?? 0;
  const memory = spec.memory && (await loadedMemory(invocation, run));
  const write = {
    ...stateWrite(invocation),
    stateHash: working.hash(),
    inputsDone,
    midTurn,
    used: usedBy(invocation, midTurn),
    ...memory?.checkpoint(),
  };
  // Includes the events: the next attempt does not send them again.
  const base = await markingLost(invocation, () =>
    run.log.takeAlong(
      async (events) =>
        await invocation.spending.alongWith(recorder, async (spend) =>
          runs.checkpoint(ref, { ...write, ...spend, ...(events.length > 0 && { events }) }),
        ),
    ),
  );
  if (base !== undefined) {
    run.onProgress?.();
    noteInbox(run, base.inbox);
    invocation.lineage = checkpointedAs(invocation.lineage, base);
    working.saved();
  }
}

/** The run's usage so far, for the limits of the next attempt. */
function usedBy({ turn, progress, position }: InvocationState, midTurn: boolean): RunUsage {
  const { totals } = position;
  const spent =
    turn === undefined || !midTurn ? nothing : { usage: turn.usage, toolCalls: turn.toolCalls };
  return { turn: spent, before: progress.usage, ...(totals && { totals }) };
}

const nothing: Spent = { usage: {}, toolCalls: 0 };

export function endChunk(turn: Turn, finishReason: FinishReason, snapshotId?: string): Chunk {
  const { usage, output } = turn;
  return {
    ...(snapshotId !== undefined && { snapshotCreated: snapshotId }),
    turnEnd: {
      ...(snapshotId !== undefined && { snapshotId }),
      finishReason,
      ...(Object.keys(usage).length > 0 && { usage }),
      ...(output !== undefined && finishReason !== 'failed' && { output }),
    },
  };
}

/** After all tools of one model message: takes a snapshot if the policy wants one, else a checkpoint if the run is durable. */
export async function checkpointTurn(invocation: InvocationState, turn: Turn): Promise<void> {
  await invocation.locked(async () => {
    const { run, host, spec, chunkSink } = invocation;
    if (run === undefined || invocation.control.cause !== undefined) return;
    const keepsFiles = run.log.durable || spec.workspace?.eachIteration === true;
    if (keepsFiles) await invocation.files?.capture();
    const iteration = turn.toolIterations++;
    if (run.detached === undefined && wantsSnapshot(invocation, 'toolIterationEnd', iteration)) {
      const snapshotId = host.newId();
      const totals = totalsOf(invocation, turn);
      await commit(
        invocation,
        run,
        { snapshotCreated: snapshotId },
        {
          snapshotId,
          event: 'toolIterationEnd',
          status: 'succeeded',
          usage: turn.usage,
          toolCalls: turn.toolCalls,
          ...(totals && { totals }),
          end: false,
        },
      );
      noteSnapshot(invocation, snapshotId);
      turn.hasSnapshots = true;
    } else if (run.log.durable && spec.recovery === 'checkpoint') {
      await checkpoint(invocation, run, true);
    }
    chunkSink.log = run.log;
  });
}

export function isAtSnapshot({ lineage: { policyBase }, working }: InvocationState): boolean {
  return policyBase !== undefined && isSameState(policyBase.state, working.state);
}

/** Whether to take a snapshot: the state must differ from the last one, and the policy must want it. */
export function wantsSnapshot(
  invocation: InvocationState,
  event: SnapshotEvent,
  eventIndex: number,
): boolean {
  const { spec, working, position } = invocation;
  const { policyBase } = invocation.lineage;
  if (spec.store === undefined || isAtSnapshot(invocation)) return false;
  const candidate = new StateCandidate({
    event,
    state: working.state,
    prevState: policyBase?.state,
    index: position.nextIndex,
    turnIndex: position.turnIndex,
    eventIndex,
  });
  try {
    return decided(spec, spec.policy(candidate));
  } catch (error) {
    invocation.failures.report(error, 'policy');
    throw error;
  }
}

/** A candidate over states in their shared form. What a policy does not read costs nothing. */
export class StateCandidate {
  readonly event: SnapshotEvent;
  readonly index: number;
  readonly turnIndex: number;
  readonly eventIndex: number;
  readonly #state: SessionState;
  readonly #prevState: SessionState | undefined;
  #plain: State | undefined;
  #prevPlain: State | undefined;

  constructor(options: {
    readonly event: SnapshotEvent;
    readonly state: SessionState;
    readonly prevState: SessionState | undefined;
    readonly index: number;
    readonly turnIndex: number;
    readonly eventIndex: number;
  }) {
    this.event = options.event;
    this.index = options.index;
    this.turnIndex = options.turnIndex;
    this.eventIndex = options.eventIndex;
    this.#state = options.state;
    this.#prevState = options.prevState;
  }

  get state(): State {
    this.#plain ??= toPlainState(this.#state);
    return this.#plain;
  }

  get prevState(): State | undefined {
    if (this.#prevState !== undefined) this.#prevPlain ??= toPlainState(this.#prevState);
    return this.#prevPlain;
  }

  get changed(): boolean {
    return this.#prevState === undefined || hashState(this.#state) !== hashState(this.#prevState);
  }
}

function decided({ name }: AgentSpec, wanted: unknown): boolean {
  if (wanted instanceof Promise) {
    wanted.catch(() => {});
    throw invalid(
      `The snapshot policy of agent "${name}" returned a promise. Make it synchronous: return true or false.`,
    );
  }
  return Boolean(wanted);
}

export function noteSnapshot({ progress, turn }: InvocationState, id: string): void {
  progress.snapshotIds.push(id);
  turn?.snapshotIds.push(id);
}

/** From now on the session continues from the state as it is. */
export function endWell(invocation: InvocationState): void {
  invocation.lineage = endedWith(invocation.lineage, invocation.working.state);
}

/**
 * The title of a session after its first turn; `undefined` if the store keeps none. A failure is only reported: a missing title
 * must not fail a turn.
 */
function titleFor({ spec, working, failures }: InvocationState): string | undefined {
  if (spec.store?.timeline === undefined) return undefined;
  try {
    return spec.titleOf(working.state);
  } catch (error) {
    failures.report(error, 'hook');
    return undefined;
  }
}
