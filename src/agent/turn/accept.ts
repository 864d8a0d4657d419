import { WaymarkError } from '../../core/error.ts';
import { toJson } from '../../core/json/json.ts';
import { parse } from '../../core/schema/schema.ts';
import { fitsLookup } from '../../protocol/ids.ts';
import type { Message } from '../../protocol/message.ts';
import type { State } from '../../protocol/state.ts';
import type { Input } from '../../protocol/turn.ts';
import { fromPlainState, type SessionState } from '../../session/session-state.ts';
import type { RequestRecord } from '../../store/contract/store.ts';
import { notFound } from '../../store/rules/errors.ts';
import {
  answeredStateKey,
  answerOnce,
  checkSignature,
  type SignatureSubject,
} from '../persistence/client-state.ts';
import type { AgentHost } from '../persistence/host.ts';
import { unknownSnapshot } from '../persistence/store-errors.ts';
import { withInitial } from '../spec/input.ts';
import type { AgentSpec } from '../spec/spec.ts';
import { claimRun, dropRun } from './claim.ts';
import { checkDeadline } from './deadlines.ts';
import { knownRequest, withoutProviderOptions } from './inputs.ts';
import type { InvocationRequest, InvocationState } from './invocation-state.ts';
import { addSteering, mayBeSteered, readLeft } from './steer.ts';
import { type ActiveRun, openedAt, startedWith, type Turn } from './turn-state.ts';

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

export function createTurn(
  { spec, control, progress }: InvocationState,
  { runId }: ActiveRun,
  input: Input,
  options: {
    readonly turnIndex: number;
    readonly parentId: string | undefined;
    readonly continued?: boolean;
  },
): Turn {
  const { turnIndex, parentId, continued = false } = options;
  const info = {
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
    artifactsSent: new Map(),
    hasTimedOut: false,
    usage: spent?.usage ?? {},
    toolCalls: spent?.toolCalls ?? 0,
    generated: 0,
    firstIndex: 0,
    hasSnapshots: false,
    isSteered: false,
    toolIterations: 0,
    snapshotIds: [],
    toolKeys: new Map(),
  };
}

/** Whether the init names a state or a snapshot, which is loaded before the session is claimed. */
export function needsOpening({ request: { init } }: InvocationState): boolean {
  return init.state !== undefined || init.snapshotId !== undefined;
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
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `Snapshot "${snapshotId}" does not belong to session "${sessionId?.slice(0, 64)}", but to session "${snapshot.sessionId}".`,
    );
  }
  if (snapshot.status !== 'succeeded') {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
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
