import { raceSignal } from '../../core/async/signal.ts';
import { hasStatus, WaymarkError } from '../../core/error.ts';
import { runningOf } from '../../store/rules/errors.ts';
import type { TurnBase, TurnRequest } from '../contract/turn-store.ts';
import type { InvocationState } from './invocation-state.ts';
import { newMemoryPlace } from './memory.ts';

/** How often a waiting turn polls the store, in case a notification is lost. */
const pollIntervalMs = 250;

/** Claims a turn on a busy session once the other turn has ended. */
export async function waitAndClaim(
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
      if (!hasStatus(error, 'ABORTED')) throw error;
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
    runId === undefined ? undefined : spec.store?.abort?.onChange(runId, changed.resolve);
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

/** Claims a turn on a fork of a busy session. */
export async function forkAndClaim(
  invocation: InvocationState,
  request: TurnRequest,
  busy: WaymarkError,
): Promise<TurnBase> {
  const { spec, scope, host } = invocation;
  const { timeline } = spec.store ?? {};
  // A fork that the caller did not ask for must not run the answered tool a second time.
  if (timeline === undefined || request.inputs.some(({ resume }) => resume)) throw busy;
  const sessionId = host.newId();
  const place = await placeOf(invocation, request);
  if (place === undefined) throw busy;
  const { expectHead: _, loaded: __, ...rest } = request;
  if (place !== null) {
    const memory = spec.memory && { memory: newMemoryPlace(host) };
    await timeline.fork(scope, place, { sessionId, snapshotId: host.newId(), ...memory });
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
