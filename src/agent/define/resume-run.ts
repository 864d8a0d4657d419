import { toWaymarkError, type WaymarkError } from '../../core/error.ts';
import type { RunRecord, TakenRun } from '../../store/contract/store.ts';
import { highestTotals } from '../../store/rules/spend.ts';
import type { Agent } from '../contract/agent.ts';
import type { AgentSpec } from '../contract/spec.ts';
import { storedState } from '../contract/stored-state.ts';
import { isUnavailable } from '../persistence/store-errors.ts';
import { activateRun, createTurn } from '../turn/accept.ts';
import { finishInvocation, saveFailed } from '../turn/finish.ts';
import { requestMarks } from '../turn/inputs.ts';
import { Invocation } from '../turn/invocation.ts';
import type { InvocationState } from '../turn/invocation-state.ts';
import { openFiles } from '../turn/turn-files.ts';
import {
  type ActiveRun,
  continuingFrom,
  countAdded,
  resumedAt,
  type Turn,
} from '../turn/turn-state.ts';
import { internalsOf } from './create-agent.ts';

interface ResumeOptions {
  /** Nothing more is done: the run ends with this error. */
  readonly failure?: WaymarkError;
  /** With `failure`: the run is kept in the dead-letter queue. @default false */
  readonly deadLetter?: boolean;
  /** Hears why the end of the run could not be saved. */
  readonly onTrouble?: (error: unknown) => void;
  /** Hears that the run has reached a new checkpoint or durable step. */
  readonly onProgress?: () => void;
}

/**
 * Continues a run that another process released or lost. Resolves when it has `ended`, or when this process has `left` it to
 * another worker. With `failure` no more turns run: the run ends as a failed one.
 */
export async function resumeRun(
  agent: Agent,
  given: TakenRun,
  { failure, deadLetter = false, onTrouble, onProgress }: ResumeOptions = {},
): Promise<'ended' | 'left'> {
  const { spec, host } = internalsOf(agent);
  const { undo } = given.run;
  if (undo !== undefined) {
    const { resumeUndo } = await import('./undo-run.ts');
    const context = { spec, host, scope: given.run.scope };
    const end = resumeUndo(context, given, { request: undo, failure, deadLetter, onProgress });
    // It has been reported.
    await end.catch(() => {});
    const open = await spec.store?.runs?.getRun(context.scope, given.run.runId);
    return open === undefined ? 'ended' : 'left';
  }
  const taken = spec.recovery === 'restart' ? await beforeTurn(spec, given) : given;
  const { run: record, claim } = taken;
  const context = record.context ?? {};
  const running = new Invocation(spec, host, {
    init: record.init ?? {},
    mode: record.mode === 'attached' ? 'attached' : 'accepted',
    context: spec.restoreContext?.(context) ?? context,
    owner: record.scope.owner,
  });
  const invocation = running.state;
  placeInvocation(invocation, taken);
  const run = activateRun(invocation, {
    runId: record.runId,
    durable: true,
    keys: requestMarks(record.scope, record.inputs).map(({ key }) => key),
    turnBase: {
      sessionId: record.sessionId,
      run: { runId: claim.runId, attempt: claim.attempt },
      nextIndex: claim.nextIndex,
      parent: claim.parent,
      base: taken.base,
    },
  });
  if (record.mode === 'detached') run.detached = { inputsDone: record.inputsDone };
  if (onProgress !== undefined) run.onProgress = onProgress;
  if (record.steered === true || record.keepInbox === true) {
    Object.assign(run.steering, { isHinted: true, isUnread: true });
  }
  invocation.run = run;
  invocation.chunkSink.log = run.log;
  for (const input of record.inputs.slice(record.inputsDone)) invocation.inbox.push(input);
  invocation.inbox.close();
  invocation.ending.deadLetter = deadLetter;
  const refusal = failure ?? (await misfitOf(invocation));
  sendReset(invocation, run, record);
  if (refusal !== undefined) invocation.failures.report(refusal, 'run');
  if (refusal === undefined) await continueRun(running, run, taken.run);
  else if (run.detached === undefined) await failAccepted(invocation, run, refusal);
  else {
    invocation.ending.failure = refusal;
    await finishInvocation(invocation);
  }
  if (run.detached?.trouble !== undefined) onTrouble?.(run.detached.trouble);
  return run.detached === undefined || run.detached.over === true ? 'ended' : 'left';
}

/** Tells watchers which of the messages that they got no longer stand. */
function sendReset(invocation: InvocationState, run: ActiveRun, record: RunRecord): void {
  const { working, position } = invocation;
  const input = record.midTurn ? record.inputs[record.inputsDone] : undefined;
  const index = input === undefined ? 0 : countAdded(working.state.history, input);
  const turnIndex = position.turnIndex + 1;
  invocation.chunkSink.push({ reset: { attempt: run.log.attempt, turnIndex, index } });
}

/** Ends a turn that a server accepted, and that is not worked on any more, with a failed snapshot. */
async function failAccepted(
  invocation: InvocationState,
  run: ActiveRun,
  error: WaymarkError,
): Promise<void> {
  run.stopHeartbeat();
  const turnIndex = ++invocation.position.turnIndex;
  const parentId = invocation.lineage.nextParentId;
  const turn = createTurn(invocation, run, {}, { turnIndex, parentId });
  try {
    await saveFailed(invocation, run, turn, error);
  } finally {
    invocation.host.logs.close(run.log);
  }
}

/** A run whose input is refused fails. One whose input cannot be read is left: its claim expires, and a worker takes it over. */
async function continueRun(running: Invocation, run: ActiveRun, record: RunRecord): Promise<void> {
  try {
    if (running.state.spec.workspace !== undefined) {
      await openFiles(running.state, run, { midTurn: record.midTurn });
    }
    let turn = continuedTurn(running.state, record);
    if (record.stopping) {
      // It was accepted before it was stopped: its message is kept.
      turn ??= await running.accept();
      running.state.control.stop();
    }
    await running.resume(turn);
  } catch (error) {
    run.stopHeartbeat();
    const hasEnded = running.state.run === undefined;
    if (run.detached !== undefined || hasEnded || isUnavailable(error)) {
      running.state.host.logs.forget(run.log);
      throw error;
    }
    await failAccepted(running.state, run, toWaymarkError(error));
  }
}

/** A custom handler starts its turn over: what the turn had saved within is behind it again. */
async function beforeTurn(spec: AgentSpec, taken: TakenRun): Promise<TakenRun> {
  const { run, claim, used } = taken;
  if (!run.midTurn) return taken;
  const { parent } = claim;
  const base = parent && (await spec.turnStore.load(run.scope, { snapshotId: parent.snapshotId }));
  const restarted = { ...run, midTurn: false };
  return { run: restarted, claim, ...(base && { base }), ...(used && { used }) };
}

/** Brings the state up to the agent's present schema; the error if that cannot be done. */
async function misfitOf(invocation: InvocationState): Promise<WaymarkError | undefined> {
  try {
    const { spec, lineage } = invocation;
    invocation.moveTo(continuingFrom(lineage, await storedState(spec, lineage.fallbackState)));
    return undefined;
  } catch (error) {
    return toWaymarkError(error);
  }
}

/** Puts an invocation where the run's last checkpoint left it. */
function placeInvocation(invocation: InvocationState, taken: TakenRun): void {
  const { run, claim, base, checkpoint, used } = taken;
  const { parent } = claim;
  const { position, progress, lineage } = invocation;
  position.sessionId = run.sessionId;
  position.turnIndex = (parent?.turnIndex ?? -1) + run.inputsDone;
  position.nextIndex = claim.nextIndex;
  position.totals = used?.totals ?? highestTotals(parent?.totals, claim.failedTotals);
  progress.usage = used?.before ?? {};
  progress.spentBefore = used?.turn;
  invocation.moveTo(resumedAt(taken, checkpoint ?? base?.state ?? lineage.fallbackState));
}

/** The turn that the last attempt was in the middle of. */
function continuedTurn(invocation: InvocationState, record: RunRecord): Turn | undefined {
  const { run, inbox } = invocation;
  if (run === undefined || !record.midTurn) return undefined;
  const input = inbox.take()?.input;
  if (input === undefined) return undefined;
  const parentId = run.turnBase.parent?.snapshotId;
  const turn = createTurn(invocation, run, input, {
    turnIndex: invocation.position.turnIndex + 1,
    continued: true,
    parentId,
  });
  turn.hasSnapshots = invocation.lineage.nextParentId !== parentId;
  turn.firstIndex = countAdded(invocation.working.state.history, input);
  invocation.startTurn(turn);
  return turn;
}
