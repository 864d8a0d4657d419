import { failedPrecondition, hasStatus, invalid } from '../../core/error.ts';
import { toJson } from '../../core/json/json.ts';
import { parse } from '../../core/schema/schema.ts';
import { fitsLookup } from '../../protocol/ids.ts';
import type { Message } from '../../protocol/message.ts';
import type { State } from '../../protocol/state.ts';
import type { Input } from '../../protocol/turn.ts';
import { fromPlainState, type SessionState } from '../../session/session-state.ts';
import type { RequestRecord, RunMode, StateBase } from '../../store/contract/store.ts';
import { notFound } from '../../store/rules/errors.ts';
import { highestTotals } from '../../store/rules/spend.ts';
import type { AgentSpec } from '../contract/spec.ts';
import { withInitial } from '../contract/stored-state.ts';
import type { TurnBase, TurnRequest } from '../contract/turn-store.ts';
import {
  answeredStateKey,
  answerOnce,
  checkSignature,
  type SignatureSubject,
} from '../persistence/client-state.ts';
import type { AgentHost } from '../persistence/host.ts';
import { unknownSnapshot } from '../persistence/store-errors.ts';
import { toolFolder } from '../workspace/tool-folder.ts';
import { forkAndClaim, waitAndClaim } from './claim-busy.ts';
import { checkDeadline } from './deadlines.ts';
import { knownRequest, requestMarks, withoutProviderOptions } from './inputs.ts';
import type { InvocationRequest, InvocationState } from './invocation-state.ts';
import { addSteering, isSteerable, mayBeSteered, readLeft } from './steer.ts';
import { closeFiles, openFiles } from './turn-files.ts';
import {
  type ActiveRun,
  claimedAt,
  openedAt,
  type RunSteering,
  startedWith,
  type Turn,
} from './turn-state.ts';

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
    if (input.resume !== undefined) checkDeadline(invocation, input.resume);
    return await startTurn(invocation, claimed, input);
  } catch (refusal) {
    if (invocation.files !== undefined) await closeFiles(invocation, { failed: true });
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
  if (spec.workspace !== undefined) await openFiles(invocation, run);
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
    // Messages that earlier turns have left come before the new one.
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
    throw failedPrecondition(
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

export function createTurn(
  invocation: InvocationState,
  { runId }: ActiveRun,
  input: Input,
  options: {
    readonly turnIndex: number;
    readonly parentId: string | undefined;
    readonly continued?: boolean;
  },
): Turn {
  const { spec, control, progress } = invocation;
  const { turnIndex, parentId, continued = false } = options;
  const info = {
    ...toolFolder(invocation),
    ...(spec.store !== undefined && { snapshotId: runId }),
    ...(parentId !== undefined && { parentId }),
    turnIndex,
    signal: control.signal,
  };
  // Usage of earlier attempts at this turn counts, whether the turn continues or starts over.
  const spent = progress.turnsBegun === 0 ? progress.spentBefore : undefined;
  return {
    info,
    input,
    continued,
    customSent: false,
    hasTimedOut: false,
    usage: spent?.usage ?? {},
    toolCalls: spent?.toolCalls ?? 0,
    generated: 0,
    firstIndex: 0,
    hasSnapshots: false,
    isSteered: false,
    toolIterations: 0,
    snapshotIds: [],
  };
}

/** Loads the state or the snapshot that the init names, before the session is claimed. Writes nothing. */
export async function openSession(invocation: InvocationState): Promise<void> {
  const { init } = invocation.request;
  if (init.state !== undefined) {
    const { spec, host, request, position } = invocation;
    position.sessionId = init.state.sessionId ?? position.sessionId;
    const subject = { owner: request.owner, now: host.clock.now() };
    const isForeign = request.remote === true && spec.clientState === undefined;
    const held = isForeign ? withoutProviderOptions(init.state) : init.state;
    const state = await loadClientState(spec, held, subject);
    invocation.moveTo(startedWith(state));
    position.turnIndex = state.history.countUserMessages() - 1;
  } else if (init.snapshotId !== undefined) {
    await openSnapshot(invocation, init.snapshotId);
  }
}

async function openSnapshot(invocation: InvocationState, snapshotId: string): Promise<void> {
  const { spec, scope, request } = invocation;
  const { sessionId } = request.init;
  const loaded = await spec.turnStore.load(scope, { snapshotId });
  if (loaded === undefined) {
    const otherwise = `No snapshot "${snapshotId.slice(0, 64)}" of agent "${spec.name}".`;
    throw await unknownSnapshot(spec, scope, snapshotId, otherwise);
  }
  const { snapshot } = loaded;
  // The snapshot was read in the caller's scope, so naming its session tells nothing about others.
  if (!fitsLookup({ snapshotId, sessionId }, snapshot.sessionId)) {
    throw invalid(
      `Snapshot "${snapshotId}" does not belong to session "${sessionId?.slice(0, 64)}", but to session "${snapshot.sessionId}".`,
    );
  }
  if (snapshot.status !== 'succeeded') {
    throw failedPrecondition(
      `The snapshot is ${snapshot.status}. A session can continue only from a succeeded snapshot.`,
    );
  }
  invocation.position.sessionId = snapshot.sessionId;
  invocation.moveTo(openedAt(loaded));
}

async function loadClientState(
  spec: AgentSpec,
  state: State,
  subject: Omit<SignatureSubject, 'agent'>,
): Promise<SessionState> {
  if (spec.clientState !== undefined) {
    checkSignature(spec.clientState, { ...subject, agent: spec.name }, state);
  }
  const loaded = withInitial(spec, fromPlainState(state));
  if (loaded.custom === undefined || spec.stateSchema === undefined) return loaded;
  const custom = await parse(spec.stateSchema, loaded.custom, 'The custom state');
  return { ...loaded, custom: toJson(custom, 'custom state') };
}

/** Claims the session for these inputs and moves the invocation to its state. `loaded` is what was read of it before. */
export async function claimRun(
  invocation: InvocationState,
  mode: RunMode,
  inputs: readonly Input[],
  loaded?: StateBase,
): Promise<ActiveRun> {
  const request = {
    ...requestOf(invocation, mode, inputs),
    ...(loaded && { loaded }),
  };
  return enterRun(invocation, request, await claimPosition(invocation, request));
}

/** Claims the session again to save what the handler changed after its last turn, unless another turn has moved the head. */
export async function claimAgain(invocation: InvocationState): Promise<ActiveRun> {
  const { spec, scope, lineage } = invocation;
  const request = requestOf(invocation, 'attached', []);
  const turnBase = await spec.turnStore.begin(scope, {
    ...request,
    from: 'head',
    expectHead: lineage.savedBase?.snapshotId ?? null,
  });
  return enterRun(invocation, request, turnBase);
}

/** Opens the event log of a claimed run and starts its heartbeat. */
export function activateRun(
  invocation: InvocationState,
  options: Pick<ActiveRun, 'runId' | 'turnBase' | 'keys'> & { readonly durable: boolean },
): ActiveRun {
  const { runId, turnBase, keys, durable } = options;
  const {
    host,
    spec: { store },
  } = invocation;
  const ref = turnBase.run;
  const log = host.logs.open({ runId, scope: invocation.scope, attempt: ref?.attempt ?? 1 });
  if (durable && ref !== undefined && store?.events !== undefined) log.writeTo(store.events, ref);
  const steering: RunSteering = {
    isHinted: turnBase.steered === true,
    taken: new Set<string>(),
  };
  const beat = (): (() => void) =>
    ref === undefined || store === undefined
      ? () => {}
      : host.live.add({
          ref,
          store,
          control: invocation.control,
          steering,
          recoverable: () => log.durable,
        });
  let stop = beat();
  return {
    runId,
    turnBase,
    log,
    keys,
    steering,
    stopHeartbeat: () => stop(),
    resumeHeartbeat: () => {
      stop = beat();
    },
  };
}

/** Releases a run that did not start. */
export async function dropRun({ host, spec }: InvocationState, run: ActiveRun): Promise<void> {
  run.stopHeartbeat();
  host.logs.close(run.log);
  // The caller needs the original error, and the claim expires in any case.
  await spec.turnStore.release(run.turnBase).catch(() => {});
}

function requestOf(
  invocation: InvocationState,
  mode: RunMode,
  inputs: readonly Input[],
): TurnRequest {
  const { spec, host, request, scope, position, lineage } = invocation;
  const requests = requestMarks(scope, inputs);
  return {
    runId: host.newId(),
    sessionId: position.sessionId,
    mode,
    init: request.init,
    inputs,
    context: request.context,
    ...versionOf(invocation),
    ...startOf(invocation),
    ...(spec.limits.session && { limited: true }),
    ...(lineage.initBase && { loaded: lineage.initBase }),
    ...(request.startedBy && { startedBy: request.startedBy }),
    ...(requests.length > 0 && { requests }),
    ...keepInboxOf(invocation),
  };
}

/** Whether messages that a turn has not taken become input of the next one. A waiting caller would get its turn as well. */
export function keepInboxOf({ spec }: InvocationState): { readonly keepInbox?: true } {
  return spec.concurrency === 'wait' && isSteerable({ spec }) ? { keepInbox: true } : {};
}

export function versionOf({ spec: { version } }: InvocationState): { readonly version?: string } {
  return version === undefined ? {} : { version };
}

/** Where a turn starts: the first one where the init says, each later one where the turn before it ended. */
function startOf({
  request,
  spec,
  lineage,
  progress,
  ending,
}: InvocationState): Pick<TurnRequest, 'from' | 'expectHead'> {
  const { snapshotId, from } = request.init;
  // Another worker ran the last turn: the session is where that one left it.
  if (ending.followed !== undefined) return { from: 'head' };
  if (progress.turnsBegun === 0) {
    const { ifHead } = request;
    return {
      from: snapshotId !== undefined ? { snapshotId } : from === null ? null : 'head',
      ...(ifHead !== undefined && { expectHead: ifHead }),
    };
  }
  if (spec.store === undefined || spec.concurrency === 'wait') return { from: 'head' };
  return { from: 'head', expectHead: lineage.savedBase?.snapshotId ?? null };
}

async function claimPosition(invocation: InvocationState, request: TurnRequest): Promise<TurnBase> {
  const { spec, scope } = invocation;
  try {
    return await spec.turnStore.begin(scope, request);
  } catch (error) {
    const busy = hasStatus(error, 'ABORTED');
    if (!busy || spec.concurrency === 'reject') throw error;
    // A caller that expects a head wants this session, not a fork of it.
    const isNamed = invocation.progress.turnsBegun === 0 && invocation.request.ifHead !== undefined;
    if (spec.concurrency === 'wait') return await waitAndClaim(invocation, request, error);
    if (isNamed) throw error;
    return await forkAndClaim(invocation, request, error);
  }
}

function enterRun(
  invocation: InvocationState,
  { runId, mode, requests = [] }: TurnRequest,
  turnBase: TurnBase,
): ActiveRun {
  takePosition(invocation, turnBase);
  const keys = requests.map(({ key }) => key);
  return activateRun(invocation, { runId, turnBase, keys, durable: mode !== 'attached' });
}

/** Moves the invocation to where the claim says the session stands. */
function takePosition(invocation: InvocationState, turnBase: TurnBase): void {
  const { spec, lineage, progress, position } = invocation;
  position.sessionId = turnBase.sessionId;
  if (spec.store === undefined) return;
  const hasMoved = turnBase.base?.snapshotId !== lineage.savedBase?.snapshotId;
  if (progress.turnsBegun === 0 || hasMoved) {
    const state = turnBase.state ?? spec.freshState;
    invocation.moveTo(claimedAt(lineage, turnBase, state));
  } else {
    invocation.lineage = claimedAt(lineage, turnBase);
  }
  const { parent } = turnBase;
  position.totals = highestTotals(parent?.totals, turnBase.failedTotals);
  position.turnIndex = parent?.turnIndex ?? -1;
  position.nextIndex = turnBase.nextIndex;
}
