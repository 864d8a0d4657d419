import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import type { Message } from '../../protocol/message.ts';
import type { Input } from '../../protocol/turn.ts';
import type {
  RequestRecord,
  RunEvent,
  RunMode,
  RunRef,
  Store,
} from '../../store/contract/store.ts';
import { highestTotals } from '../../store/rules/totals.ts';
import type { AgentHost } from '../persistence/host.ts';
import { answeredStateKey, answerOnce } from '../persistence/replay-guard.ts';
import type { DispatchedRun } from '../spec/dispatcher.ts';
import { freshState } from '../spec/init.ts';
import { fullStore } from '../spec/spec.ts';
import type { TurnBase, TurnRequest } from '../spec/turn-store.ts';
import { claimWhenBusy } from './concurrency.ts';
import type { ActiveRun, InvocationRequest, InvocationState } from './invocation-state.ts';
import { claimedAt } from './lineage.ts';
import { knownRequest, requestMarks } from './requests.ts';
import type { Turn } from './turn-state.ts';

/** An input whose request id belongs to a run already. */
export interface KnownInput {
  readonly input: Input;
  readonly join: RequestRecord;
}

/**
 * Accepts an input: claims the session, goes to its state, checks the input against it, and says so. `undefined` when it was
 * stopped before.
 */
export async function acceptTurn(
  invocation: InvocationState,
  input: Input,
): Promise<Turn | KnownInput | undefined> {
  const { run, host, request, control } = invocation;
  // A detached run takes all that was queued; one that was taken over is claimed already.
  if (run !== undefined) return await startTurn(invocation, run, input);
  checkOpen(host, request);
  const claimed = await claimRun(invocation, request.mode, [input]).catch((error: unknown) => {
    const join = knownRequest(error);
    if (join !== undefined) return { input, join };
    if (control.cause?.kind === 'stop') return undefined;
    throw error;
  });
  if (claimed === undefined || 'join' in claimed) return claimed;
  try {
    return await startTurn(invocation, claimed, input);
  } catch (refusal) {
    await dropRun(invocation, claimed);
    throw refusal;
  }
}

/**
 * Makes the running turn, or what is queued and these inputs, a run of its own that goes on without the caller. One that has
 * not begun goes to whoever the app's engine finds for it; the answer says where it is.
 */
export async function claimDetached(
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
  const claimed = running ?? (await claimOrJoin(invocation, inputs));
  if ('join' in claimed) return claimed;
  const run = claimed;
  const ref = run.turnBase.run;
  if (ref === undefined) throw new TypeError('A store that can abort gives claims.');
  try {
    const [first] = inputs;
    if (running === undefined && first !== undefined) await checkReceivable(invocation, run, first);
    const { init, context } = invocation.request;
    const version = versionOf(invocation);
    const away = dispatcher?.handOver(dispatched(invocation, ref));
    // A heartbeat of ours would only be in the way of whoever takes it over.
    if (away !== undefined) run.stopHeartbeat();
    const request = { mode: 'detached', init, inputs, context, ...version } as const;
    const detach = async (events: readonly RunEvent[] = []): Promise<void> => {
      await store.runs?.detach(ref, request, away, events.length > 0 ? events : undefined);
    };
    if (store.events === undefined) await detach();
    else await run.log.writeWith({ events: store.events, run: ref }, detach);
  } catch (error) {
    if (running === undefined) await dropRun(invocation, run);
    throw error;
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

/** Claims a run for these inputs; when there is but one, and it was accepted before, gives that run. */
async function claimOrJoin(
  invocation: InvocationState,
  inputs: readonly Input[],
): Promise<ActiveRun | { readonly join: RequestRecord }> {
  try {
    return await claimRun(invocation, 'attached', inputs);
  } catch (error) {
    const join = inputs.length === 1 ? knownRequest(error) : undefined;
    if (join === undefined) throw error;
    return { join };
  }
}

function keyedTooLate(): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
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

function versionOf({ spec: { version } }: InvocationState): { readonly version?: string } {
  return version === undefined ? {} : { version };
}

/** Refuses new work of an app that is closing; what a running turn starts belongs to that turn. */
export function checkOpen(host: AgentHost, { startedBy }: InvocationRequest): void {
  if (startedBy === undefined) host.checkOpen();
}

function detachableStore({ spec }: InvocationState): Store {
  const store = fullStore(spec);
  if (store?.runs === undefined || store.abort === undefined) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      spec.store === undefined
        ? `Agent "${spec.name}" has no store, so nothing can go on in the background. Give it one to detach.`
        : `The store of agent "${spec.name}" cannot abort runs, so it takes no detached ones.`,
    );
  }
  return store;
}

async function claimRun(
  invocation: InvocationState,
  mode: RunMode,
  inputs: readonly Input[],
): Promise<ActiveRun> {
  const request = requestOf(invocation, mode, inputs);
  return enterRun(invocation, request, await claimPosition(invocation, request));
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
  };
}

function enterRun(
  invocation: InvocationState,
  { runId, mode, requests = [] }: TurnRequest,
  turnBase: TurnBase,
): ActiveRun {
  const { spec, host } = invocation;
  takePosition(invocation, turnBase);
  const keys = requests.map(({ key }) => key);
  return activateRun(invocation, {
    runId,
    turnBase,
    keys,
    durable: mode !== 'attached',
    spec,
    host,
  });
}

/** Claims the session once more, after the last turn, to save what the handler did behind it; only where that turn left it. */
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

/** Puts a claimed run on the list of those this process works on. */
export function activateRun(
  invocation: InvocationState,
  options: Pick<InvocationState, 'spec' | 'host'> & {
    readonly runId: string;
    readonly turnBase: TurnBase;
    readonly keys: readonly string[];
    readonly durable: boolean;
  },
): ActiveRun {
  const { spec, host, runId, turnBase, keys, durable } = options;
  const store = fullStore(spec);
  const ref = turnBase.run;
  const log = host.logs.open({ runId, scope: invocation.scope, attempt: ref?.attempt ?? 1 });
  if (durable && ref !== undefined && store?.events !== undefined) log.writeTo(store.events, ref);
  const leave =
    ref === undefined || store === undefined
      ? () => {}
      : host.live.add({
          ref,
          store,
          control: invocation.control,
          recoverable: () => log.durable,
        });
  return { runId, turnBase, log, stopHeartbeat: leave, keys };
}

/** Where the first turn starts is up to the init; each later one goes on from the one before. */
function startOf({
  request,
  spec,
  lineage,
  progress,
  ending,
}: InvocationState): Pick<TurnRequest, 'from' | 'expectHead'> {
  const { snapshotId } = request.init;
  // Another worker ran the last turn: the session is where that one left it.
  if (ending.followed !== undefined) return { from: 'head' };
  if (progress.turnsBegun === 0) {
    const { ifHead } = request;
    return {
      from: snapshotId === undefined ? 'head' : { snapshotId },
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
    const busy = isWaymarkError(error) && error.status === 'ABORTED';
    if (!busy || spec.concurrency === 'reject') throw error;
    // A caller that names the head it expects wants this session or none.
    const isNamed = invocation.progress.turnsBegun === 0 && invocation.request.ifHead !== undefined;
    if (isNamed && spec.concurrency === 'fork') throw error;
    return await claimWhenBusy(invocation, request, error);
  }
}

/** Goes to where the claim says the session stands. */
function takePosition(invocation: InvocationState, turnBase: TurnBase): void {
  const { spec, lineage, progress, position } = invocation;
  position.sessionId = turnBase.sessionId;
  if (spec.store === undefined) return;
  const hasMoved = turnBase.base?.snapshotId !== lineage.savedBase?.snapshotId;
  if (progress.turnsBegun === 0 || hasMoved) {
    const state = turnBase.state ?? freshState(spec);
    invocation.moveTo(claimedAt(lineage, turnBase, state));
  } else {
    invocation.lineage = claimedAt(lineage, turnBase);
  }
  const { parent } = turnBase;
  position.totals = highestTotals(parent?.totals, turnBase.failedTotals);
  position.turnIndex = parent?.turnIndex ?? -1;
  position.nextIndex = turnBase.nextIndex;
}

/** Throws when the input is none for the state that the run goes on from. */
async function checkReceivable(
  invocation: InvocationState,
  run: ActiveRun,
  input: Input,
): Promise<readonly Message[]> {
  const { spec, working } = invocation;
  if (
    input.resume !== undefined &&
    run.turnBase.parent?.answered === true &&
    run.detached === undefined
  ) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      'This interrupt has been answered already. To try another answer, fork the snapshot and answer there.',
    );
  }
  return await spec.receive(working.state, input, invocation.request.context);
}

async function startTurn(invocation: InvocationState, run: ActiveRun, input: Input): Promise<Turn> {
  const { spec, working, chunkSink } = invocation;
  const messages = await checkReceivable(invocation, run, input);
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
  working.addMessages(messages);
  return turn;
}

/** Notes the answer to an interrupt of a client-held state, which can be sent any number of times; gives its key. */
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

/** A turn of a run. */
export function createTurn(
  { spec, control, progress }: InvocationState,
  { runId }: ActiveRun,
  input: Input,
  options: {
    readonly turnIndex: number;
    /** What the turn goes on from. */
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
  // What an attempt before this one has used in the turn counts, whether the turn continues or starts over.
  const spent = progress.turnsBegun === 0 ? progress.spentBefore : undefined;
  return {
    info,
    input,
    continued,
    customSent: false,
    artifactsSent: new Map(),
    leftBehind: false,
    usage: spent?.usage ?? {},
    toolCalls: spent?.toolCalls ?? 0,
    generated: 0,
    hasSnapshots: false,
    toolIterations: 0,
    snapshotIds: [],
    toolKeys: new Map(),
  };
}

/** Lets go of a run that came to nothing. */
export async function dropRun({ host, spec }: InvocationState, run: ActiveRun): Promise<void> {
  run.stopHeartbeat();
  host.logs.close(run.log);
  // What was refused must be heard of, and the claim expires in any case.
  await spec.turnStore.release(run.turnBase).catch(() => {});
}
