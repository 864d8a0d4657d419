import { WaymarkError } from '../../core/error.ts';
import type { Input } from '../../protocol/turn.ts';
import type {
  RequestRecord,
  RunEvent,
  RunRef,
  StateBase,
  Store,
} from '../../store/contract/store.ts';
import type { DispatchedRun } from '../spec/dispatcher.ts';
import { storedState } from '../spec/init.ts';
import { fullStore } from '../spec/spec.ts';
import { checkOpen, checkReceivable } from './accept-turn.ts';
import type { ActiveRun } from './active-run.ts';
import { checkDeadline } from './check-deadline.ts';
import { claimRun, dropRun, keepInboxOf, versionOf } from './claim-run.ts';
import type { InvocationState } from './invocation-state.ts';
import { wasDetached } from './join.ts';
import { knownRequest } from './requests.ts';

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
        checkDeadline(invocation, first);
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

function detachableStore({ spec }: InvocationState): Store {
  const store = fullStore(spec);
  if (store?.runs === undefined || store.abort === undefined) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      spec.store === undefined
        ? `Agent "${spec.name}" has no store, so it cannot run in the background. Pass \`store\` to waymark() or to the agent.`
        : `The store of agent "${spec.name}" cannot abort runs, so it takes no detached ones.`,
    );
  }
  return store;
}
