import { failedPrecondition, hasStatus, toErrorBody, type WaymarkError } from '../../core/error.ts';
import type { Snapshot, SnapshotStatus } from '../../protocol/snapshot.ts';
import type { Chunk, FinishReason, Input, Output } from '../../protocol/turn.ts';
import type { RequestRecord, RunEvent, RunRef, StateBase } from '../../store/contract/store.ts';
import { isUntaken } from '../../store/rules/decide-steer.ts';
import type { DispatchedRun } from '../contract/dispatcher.ts';
import type { AgentStore } from '../contract/spec.ts';
import { storedState } from '../contract/stored-state.ts';
import { checkOpen, checkReceivable, claimRun, dropRun, keepInboxOf, versionOf } from './accept.ts';
import { checkpoint, commit, endChunk, stateWrite } from './commit.ts';
import { checkDeadline } from './deadlines.ts';
import { knownRequest } from './inputs.ts';
import type { InvocationState } from './invocation-state.ts';
import { wasDetached } from './join.ts';
import { totalsOf } from './limits.ts';
import { receiptFor } from './output.ts';
import { leavingInbox, takesInbox } from './steer.ts';
import { notifyInterrupt } from './telemetry.ts';
import {
  type ActiveRun,
  continuingFrom,
  type Outcome,
  type Turn,
  usageOf,
  waitsForSteering,
} from './turn-state.ts';

/**
 * Turns the running turn, or the queued inputs, into a detached run that continues without the caller. If no turn is running,
 * the app's engine may dispatch the run to another worker; the result says where it runs.
 */
export async function detachRun(
  invocation: InvocationState,
  own: readonly Input[],
): Promise<'here' | 'elsewhere' | { readonly join: RequestRecord }> {
  const { inbox, turn, host, request } = invocation;
  const store = detachableStore(invocation);
  const queued = [...inbox.queued, ...own];
  const inputs = turn === undefined ? queued : [turn.input, ...queued];
  const running = turn === undefined ? undefined : invocation.run;
  if (running === undefined) checkOpen(host, request);
  else if (queued.some(({ requestId }) => requestId !== undefined)) throw keyedTooLate();
  const dispatcher = running === undefined && inputs.length > 0 ? host.dispatcher : undefined;
  await dispatcher?.admit();
  const mayAccept = running === undefined && dispatcher === undefined;
  const claimed = running ?? (await claimOrJoin(invocation, inputs, mayAccept));
  if ('join' in claimed) return claimed;
  const run = claimed;
  const ref = run.turnBase.run;
  if (ref === undefined) throw new TypeError('A store that can abort gives claims.');
  if (run.turnBase.detached !== true) {
    try {
      const [first] = inputs;
      if (running === undefined && first !== undefined) {
        if (first.resume !== undefined) checkDeadline(invocation, first.resume);
        await checkReceivable(invocation, run, first);
      }
      const { init, context } = invocation.request;
      const stored = { ...versionOf(invocation), ...keepInboxOf(invocation) };
      const away = dispatcher?.handOver(dispatched(invocation, ref));
      // A heartbeat of this process would keep the other worker from taking over the run.
      if (away !== undefined) run.stopHeartbeat();
      const request = { mode: 'detached', init, inputs, context, ...stored } as const;
      const detach = async (events: readonly RunEvent[] = []): Promise<void> => {
        await store.runs?.detach(ref, request, away, events.length > 0 ? events : undefined);
      };
      if (store.events === undefined) await detach();
      else await run.log.writeWith({ events: store.events, run: ref }, detach);
    } catch (error) {
      if (running === undefined) await dropRun(invocation, run);
      throw error;
    }
  }
  invocation.run = run;
  if (dispatcher !== undefined) {
    host.logs.forget(run.log);
    return 'elsewhere';
  }
  run.detached = { inputsDone: 0 };
  invocation.chunkSink.log = run.log;
  return 'here';
}

/**
 * Claims a run for these inputs. If nothing can refuse them any more, the claim accepts the run in one write. Otherwise the session is
 * reserved, and `detach` accepts the run once the inputs have been checked. A single input with a known request id joins the run that was
 * started for it, once that run is certain to continue without its caller.
 */
async function claimOrJoin(
  invocation: InvocationState,
  inputs: readonly Input[],
  mayAccept: boolean,
): Promise<ActiveRun | { readonly join: RequestRecord }> {
  const [input] = inputs;
  const ready = mayAccept ? await readyState(invocation, input) : undefined;
  const mode = ready === undefined ? 'attached' : 'detached';
  for (;;) {
    try {
      return await claimRun(invocation, mode, inputs, ready?.base);
    } catch (error) {
      const join = inputs.length === 1 ? knownRequest(error) : undefined;
      if (join === undefined || input === undefined) throw error;
      if (await wasDetached(invocation, input, join)) return { join };
    }
  }
}

/**
 * The state that a run will start from, if it can be read and nothing in it could refuse the input: a message fits every state.
 * `undefined` if the input must be checked under a claim.
 */
async function readyState(
  { spec, scope, host, request, position, progress, lineage }: InvocationState,
  input: Input | undefined,
): Promise<{ readonly base?: StateBase } | undefined> {
  if (input?.resume !== undefined || input?.tools !== undefined) return undefined;
  const { init } = request;
  const { sessionId } = position;
  const isNew = progress.turnsBegun === 0 && init.sessionId === undefined && !lineage.initBase;
  if (isNew || host.cache.get(scope, sessionId) !== undefined) return {};
  try {
    const base = lineage.initBase ?? (await spec.turnStore.load(scope, { sessionId }));
    if (base === undefined) return {};
    await storedState(spec, base.state);
    return { base };
  } catch {
    // The claim says why.
    return undefined;
  }
}

function keyedTooLate(): WaymarkError {
  return failedPrecondition(
    'A turn that runs cannot be detached together with inputs that have request ids of their own. Wait for the end of the turn, or send them without a request id.',
  );
}

function dispatched(invocation: InvocationState, ref: RunRef): DispatchedRun {
  const { scope, position, request } = invocation;
  return {
    ...ref,
    scope,
    sessionId: position.sessionId,
    ...versionOf(invocation),
    ...(request.queue && { queue: request.queue }),
  };
}

function detachableStore({ spec }: InvocationState): AgentStore {
  const { store } = spec;
  if (store?.runs === undefined || store.abort === undefined) {
    throw failedPrecondition(
      spec.store === undefined
        ? `Agent "${spec.name}" has no store, so it cannot run in the background. Pass \`store\` to waymark() or to the agent.`
        : `The store of agent "${spec.name}" cannot abort runs, so it takes no detached ones.`,
    );
  }
  return store;
}

/** The output of the caller who detached. */
export function detachedOutput({ position, run, progress }: InvocationState): Output {
  return {
    sessionId: position.sessionId,
    ...(run && { snapshotId: run.runId }),
    snapshotIds: [...progress.snapshotIds],
    finishReason: 'detached',
  };
}

/**
 * The end of one turn of a detached run: no snapshot, only a checkpoint when another input follows. The last turn of an agent that
 * can be steered ends together with its run, and only with the whole inbox.
 */
export async function endDetachedTurn(
  invocation: InvocationState,
  run: ActiveRun,
  turn: Turn,
  outcome: Outcome,
): Promise<Outcome> {
  const { position, ending, working, inbox } = invocation;
  const totalsBefore = position.totals;
  position.totals = totalsOf(invocation, turn) ?? totalsBefore;
  if (outcome.kind === 'done') {
    ending.last = {
      finishReason: outcome.finishReason,
      ...(outcome.output !== undefined && { output: outcome.output }),
    };
    const isEnd = inbox.queued.length === 0 && waitsForSteering(outcome) && takesInbox(invocation);
    if (isEnd && (await endTogether(invocation, run, turn, outcome.finishReason)) === 'steered') {
      position.totals = totalsBefore;
      return { kind: 'steered' };
    }
  }
  turn.snapshotIds.push(run.runId);
  if (outcome.kind !== 'done' || run.detached?.ended !== undefined) return outcome;
  invocation.lineage = continuingFrom(invocation.lineage, working.state);
  const end = endChunk(turn, outcome.finishReason);
  run.log.push(end, invocation.chunkSink.shown(end));
  if (run.detached !== undefined) run.detached.inputsDone++;
  if (inbox.queued.length > 0) await checkpoint(invocation, run, false);
  return outcome;
}

/**
 * Ends the run with its last turn, unless the inbox has messages that the turn has not taken. A commit that fails here is tried again,
 * and then reported, by {@link finishDetached}.
 */
async function endTogether(
  invocation: InvocationState,
  run: ActiveRun,
  turn: Turn,
  finishReason: FinishReason,
): Promise<'steered' | undefined> {
  run.stopHeartbeat();
  try {
    const ended = await commitEnd(invocation, run, {
      chunk: endChunk(turn, finishReason),
      steered: run.steering.taken.size,
    });
    if (ended !== undefined && run.detached !== undefined) run.detached.ended = ended;
  } catch (error) {
    run.resumeHeartbeat();
    if (!isUntaken(error)) return undefined;
    run.steering.isHinted = true;
    return 'steered';
  }
  return undefined;
}

/** Ends a detached run: gives its pending snapshot a terminal status, unless it was aborted first. */
export async function finishDetached(invocation: InvocationState, run: ActiveRun): Promise<void> {
  const { host } = invocation;
  run.stopHeartbeat();
  try {
    const ended =
      run.detached?.ended ?? (await commitEnd(invocation, run, untoldEnd(invocation, run)));
    const snapshot = ended ?? (await attachPartial(invocation, run));
    if (run.detached !== undefined && invocation.control.cause?.kind !== 'lost') {
      run.detached.over = true;
    }
    if (ended?.finishReason === 'interrupted') notifyInterrupt(invocation, run.runId);
    if (snapshot !== undefined) await callOnFinish(invocation, snapshot);
  } catch (error) {
    // Another worker, or the next start of this one, continues the run.
    if (run.detached !== undefined) run.detached.trouble = error;
    invocation.failures.report(error, 'run');
  } finally {
    host.logs.close(run.log);
  }
}

/**
 * The last turn has ended already, but may not be saved with its inbox. If the inbox has got more since, the store refuses the end
 * and the worker that takes over takes it.
 */
function untoldEnd(
  invocation: InvocationState,
  run: ActiveRun,
): { readonly steered: number } | undefined {
  const { last } = invocation.ending;
  const waits = last !== undefined && last.finishReason !== 'interrupted';
  return waits && takesInbox(invocation) ? { steered: run.steering.taken.size } : undefined;
}

/** Writes the terminal status; `undefined` if another worker has the run or it was aborted. */
async function commitEnd(
  invocation: InvocationState,
  run: ActiveRun,
  /** The end of its last turn, if that is not told yet, and how many messages of the inbox it has. */
  end?: { readonly chunk?: Chunk; readonly steered: number },
): Promise<Snapshot | undefined> {
  const { control, position, progress, lineage } = invocation;
  const { failure, last, deadLetter } = invocation.ending;
  const { usage } = progress;
  if (control.cause?.kind === 'lost') return undefined;
  const status = statusOf(invocation);
  const finishReason = status === 'succeeded' ? last?.finishReason : status;
  position.turnIndex = Math.max(0, position.turnIndex);
  const { totals, turnIndex } = position;
  const isGood = status === 'succeeded';
  const chunk = isGood ? (end?.chunk ?? {}) : { turnEnd: { finishReason: status } };
  const error = failure && toErrorBody(failure);
  const requests = receiptFor(run, () => {
    const { message } = invocation.result();
    const snapshotId = isGood ? run.runId : lineage.fallbackSnapshotId;
    return {
      turnIndex,
      snapshotId,
      snapshotIds: isGood ? [run.runId] : undefined,
      message: isGood ? message : undefined,
      output: isGood ? last?.output : undefined,
      finishReason,
      usage: usageOf(progress),
      error,
    };
  });
  // The state of an aborted run is in no conversation, so the next turn gets all its messages.
  const left = status === 'aborted' ? {} : leavingInbox(invocation, run);
  const inbox = end && isGood ? { steered: end.steered } : left;
  try {
    const { snapshot } = await commit(invocation, run, chunk, {
      snapshotId: run.runId,
      event: 'detach',
      status,
      ...(finishReason && { finishReason }),
      ...(error && { error }),
      usage,
      ...(totals && { totals }),
      ...(deadLetter && { deadLetter }),
      end: true,
      ...inbox,
      ...requests,
    });
    return snapshot;
  } catch (error) {
    if (hasStatus(error, 'ABORTED')) return undefined;
    throw error;
  }
}

/** Attaches the partial state to the snapshot of an aborted run; `undefined` if the run was taken over instead. */
async function attachPartial(
  invocation: InvocationState,
  run: ActiveRun,
): Promise<Snapshot | undefined> {
  const { working, spec, scope, progress, position } = invocation;
  const { totals } = position;
  const ref = run.turnBase.run;
  const { store } = spec;
  if (ref === undefined || store === undefined) return undefined;
  await store.runs?.attachPartial(ref, {
    ...stateWrite(invocation),
    stateHash: working.hash(),
    usage: progress.usage,
    ...(totals && { totals }),
  });
  const snapshot = await store.getSnapshot(scope, { snapshotId: run.runId });
  if (snapshot?.status !== 'aborted') return undefined;
  const { state: _, ...metadata } = snapshot;
  return metadata;
}

function statusOf({
  ending: { failure },
  control,
}: InvocationState): Exclude<SnapshotStatus, 'pending' | 'expired'> {
  if (failure !== undefined || control.cause?.kind === 'failed') return 'failed';
  return control.cause === undefined ? 'succeeded' : 'aborted';
}

async function callOnFinish(
  { spec, failures, scope }: InvocationState,
  snapshot: Snapshot,
): Promise<void> {
  try {
    await spec.onFinish?.({
      agent: spec.name,
      ...(scope.owner !== undefined && { owner: scope.owner }),
      snapshot,
    });
  } catch (error) {
    failures.report(error, 'hook');
  }
}
