import { WaymarkError } from '../../core/error.ts';
import type { Message } from '../../protocol/message.ts';
import type { Input } from '../../protocol/turn.ts';
import type { RequestRecord } from '../../store/contract/store.ts';
import { notFound } from '../../store/rules/errors.ts';
import type { AgentHost } from '../persistence/host.ts';
import { answeredStateKey, answerOnce } from '../persistence/replay-guard.ts';
import type { ActiveRun } from './active-run.ts';
import { checkDeadline } from './check-deadline.ts';
import { claimRun, dropRun } from './claim-run.ts';
import { createTurn } from './create-turn.ts';
import type { InvocationRequest, InvocationState } from './invocation-state.ts';
import { knownRequest } from './requests.ts';
import { addSteering, mayBeSteered, readLeft } from './take-steering.ts';
import type { Turn } from './turn-state.ts';

/** An input whose request id already belongs to a run. */
export interface KnownInput {
  readonly input: Input;
  readonly join: RequestRecord;
}

/**
 * Accepts an input: claims the session, loads its state, checks the input against the state, and sends `turnStart`. Returns
 * `undefined` if the invocation was stopped before.
 */
export async function acceptTurn(
  invocation: InvocationState,
  input: Input,
): Promise<Turn | KnownInput | undefined> {
  const { run, host, request, control } = invocation;
  // A detached run was claimed for all its inputs, and a run that was taken over is claimed already.
  if (run !== undefined) return await startTurn(invocation, run, input);
  checkOpen(host, request);
  let claimed: ActiveRun;
  try {
    claimed = await claimRun(invocation, request.mode, [input]);
  } catch (error) {
    const join = knownRequest(error);
    if (join !== undefined) return { input, join };
    if (control.cause?.kind === 'stop') return undefined;
    throw error;
  }
  try {
    checkDeadline(invocation, input);
    return await startTurn(invocation, claimed, input);
  } catch (refusal) {
    await dropRun(invocation, claimed);
    throw refusal;
  }
}

/** Refuses new work while the app closes. A sub-agent's turn belongs to the turn that started it, so it may still start. */
export function checkOpen(host: AgentHost, { startedBy }: InvocationRequest): void {
  if (startedBy === undefined) host.checkOpen();
}

async function startTurn(invocation: InvocationState, run: ActiveRun, input: Input): Promise<Turn> {
  const { spec, working, chunkSink } = invocation;
  const messages = await checkReceivable(invocation, run, input);
  // A turn that answers an interrupt takes them after its tools.
  const takesLeft = input.message !== undefined && mayBeSteered(invocation, run);
  const left = takesLeft ? await readLeft(invocation, run) : [];
  const turn = createTurn(invocation, run, input, {
    turnIndex: invocation.position.turnIndex + 1,
    parentId: invocation.lineage.nextParentId,
  });
  if (spec.store === undefined && input.resume !== undefined) {
    turn.answeredKey = await answerHeldState(invocation);
  }
  invocation.run = run;
  invocation.startTurn(turn);
  chunkSink.log = run.log;
  chunkSink.push({
    turnStart: {
      sessionId: invocation.position.sessionId,
      ...(spec.store !== undefined && { snapshotId: run.runId }),
      turnIndex: turn.info.turnIndex,
    },
  });
  if (left.length === 0) working.addMessages(messages);
  else {
    // What earlier turns have left comes before the new message.
    working.addMessages(messages.slice(0, -1));
    addSteering(invocation, run, left);
    working.addMessages(messages.slice(-1));
  }
  return turn;
}

/** Returns the messages that the input adds; throws if the input does not fit the state that the run starts from. */
export function checkReceivable(
  invocation: InvocationState,
  run: ActiveRun,
  input: Input,
): Promise<readonly Message[]> {
  const { spec, working, request, position } = invocation;
  const { parent, nextIndex } = run.turnBase;
  const isNew = spec.store !== undefined && parent === undefined && nextIndex === 0;
  if (input.resume !== undefined && isNew && request.init.sessionId !== undefined) {
    throw notFound('session', position.sessionId);
  }
  if (input.resume !== undefined && parent?.answered === true && run.detached === undefined) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      'This interrupt has been answered already. To try another answer, fork the snapshot and answer there.',
    );
  }
  return spec.receive(working.state, input, invocation.request.context);
}

/** Records that the interrupt of a client-held state was answered, because a client can send the same state again. Returns its key. */
async function answerHeldState(invocation: InvocationState): Promise<string> {
  const { spec, host, scope, position, working } = invocation;
  const guard = spec.clientState?.replayGuard;
  const answered = { sessionId: position.sessionId, state: working.state };
  if (guard !== undefined) {
    if ('open' in guard) await guard.open?.();
    await answerOnce(guard, scope, { ...answered, now: new Date(host.clock.now()).toISOString() });
  }
  return answeredStateKey(answered);
}
