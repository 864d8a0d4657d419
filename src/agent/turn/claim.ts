import { raceSignal } from '../../core/async/signal.ts';
import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import type { Input } from '../../protocol/turn.ts';
import type { RunMode, StateBase } from '../../store/contract/store.ts';
import { runningOf } from '../../store/rules/errors.ts';
import { highestTotals } from '../../store/rules/spend.ts';
import { freshState } from '../spec/input.ts';
import { fullStore } from '../spec/spec.ts';
import type { TurnBase, TurnRequest } from '../spec/turn-store.ts';
import { requestMarks } from './inputs.ts';
import type { InvocationState } from './invocation-state.ts';
import { isSteerable } from './steer.ts';
import { type ActiveRun, claimedAt, type RunSteering } from './turn-state.ts';

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
    const busy = isWaymarkError(error) && error.status === 'ABORTED';
    if (!busy || spec.concurrency === 'reject') throw error;
    // A caller that expects a head wants this session, not a fork of it.
    const isNamed = invocation.progress.turnsBegun === 0 && invocation.request.ifHead !== undefined;
    if (isNamed && spec.concurrency === 'fork') throw error;
    return await claimWhenBusy(invocation, request, error);
  }
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

/** Moves the invocation to where the claim says the session stands. */
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

/** How often a waiting turn polls the store, in case a notification is lost. */
const pollIntervalMs = 250;

/** Claims a turn on a busy session: waits for the other turn, or forks the session. */
async function claimWhenBusy(
  invocation: InvocationState,
  request: TurnRequest,
  busy: WaymarkError,
): Promise<TurnBase> {
  return invocation.spec.concurrency === 'fork'
    ? await forkAndClaim(invocation, request, busy)
    : await waitAndClaim(invocation, request, busy);
}

async function waitAndClaim(
  invocation: InvocationState,
  request: TurnRequest,
  busy: WaymarkError,
): Promise<TurnBase> {
  const { spec, scope, control } = invocation;
  let running = runningOf(busy);
  // Waiting does not bring back the expected head.
  if (running === undefined && request.expectHead !== undefined) throw busy;
  for (;;) {
    await runChange(invocation, running);
    if (control.signal.aborted)
      throw new WaymarkError('CANCELLED', 'Stopped while waiting for the session.');
    try {
      return await spec.turnStore.begin(scope, request);
    } catch (error) {
      if (!isWaymarkError(error) || error.status !== 'ABORTED') throw error;
      running = runningOf(error);
      if (running === undefined && request.expectHead !== undefined) throw error;
    }
  }
}

/** Resolves when the run may have changed, or after the poll interval. */
export async function runChange(
  { spec, host, control }: InvocationState,
  runId: string | undefined,
): Promise<void> {
  const over = new AbortController();
  const changed = Promise.withResolvers<void>();
  const unlisten =
    runId === undefined ? undefined : fullStore(spec)?.abort?.onChange(runId, changed.resolve);
  try {
    const later = host.clock.sleep(pollIntervalMs, over.signal);
    await raceSignal(Promise.race([changed.promise, later]), control.signal);
  } catch {
    // Stopped: the caller checks its signal.
  } finally {
    over.abort();
    unlisten?.();
  }
}

async function forkAndClaim(
  invocation: InvocationState,
  request: TurnRequest,
  busy: WaymarkError,
): Promise<TurnBase> {
  const { spec, scope, host } = invocation;
  const { timeline } = fullStore(spec) ?? {};
  // A fork that the caller did not ask for must not run the answered tool a second time.
  if (timeline === undefined || request.inputs.some(({ resume }) => resume)) throw busy;
  const sessionId = host.newId();
  const place = await placeOf(invocation, request);
  if (place === undefined) throw busy;
  const { expectHead: _, loaded: __, ...rest } = request;
  if (place !== null) {
    await timeline.fork(scope, place, { sessionId, snapshotId: host.newId() });
  }
  return await spec.turnStore.begin(scope, { ...rest, sessionId, from: 'head' });
}

/** The snapshot that the turn would have started from: `null` for the empty state, `undefined` if it was deleted. */
async function placeOf(
  { spec, scope }: InvocationState,
  { from, expectHead, sessionId }: TurnRequest,
): Promise<string | null | undefined> {
  if (expectHead === null || from === null) return null;
  if (expectHead !== undefined) {
    const place = await spec.turnStore.load(scope, { snapshotId: expectHead });
    return place?.snapshotId;
  }
  const place = await spec.turnStore.load(scope, from === 'head' ? { sessionId } : from);
  return place?.snapshotId ?? null;
}
