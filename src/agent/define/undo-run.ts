import { raceSignal } from '../../core/async/signal.ts';
import {
  failedPrecondition,
  isWaymarkError,
  messageOf,
  toErrorBody,
  WaymarkError,
} from '../../core/error.ts';
import { defined, type JsonObject, toJson } from '../../core/json/json.ts';
import { count } from '../../core/metrics.ts';
import { backoff, timeoutSignal } from '../../core/time.ts';
import { inSpan } from '../../core/trace.ts';
import { backend, genAi, attributes as names, operations } from '../../core/trace-names.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { hashState } from '../../session/session-state.ts';
import type {
  ExpectHead,
  RunRef,
  StateBase,
  StoredEffect,
  TakenRun,
  UndoRequest,
} from '../../store/contract/store.ts';
import type { TurnBase } from '../contract/turn-store.ts';
import { isUnavailable } from '../persistence/store-errors.ts';
import { markingLost, StopControl } from '../turn/stop.ts';
import { lostError } from '../turn/turn-state.ts';
import {
  effectsOf,
  readPlan,
  targetOf,
  toUndoPlan,
  type UndoContext,
  UndoFinder,
} from './read-undo-plan.ts';
import { supportOf } from './run-operations.ts';
import { undoKeyOf } from './undo-plan.ts';

/** A run that undoes effects, under one attempt. */
interface UndoRun {
  readonly ref: RunRef;
  readonly sessionId: string;
  readonly request: UndoRequest;
  /** The context of the caller who undoes. */
  readonly context: JsonObject;
  /** The claim and the head, which changes if files are saved first. */
  turnBase: TurnBase & { readonly run: RunRef };
  /** A new attempt or effect counts as progress. */
  readonly onProgress?: (() => void) | undefined;
}

/** Undoes what a plan says, and then moves the head. Resolves to the snapshot that is the head now. */
export async function restoreWithUndo(
  context: UndoContext,
  request: UndoRequest,
  { caller, expectHead }: ExpectHead & { readonly caller: object },
): Promise<Snapshot> {
  const { spec, host, scope } = context;
  host.checkOpen();
  effectsOf(spec);
  const { sessionId } = await targetOf(context, request.to);
  const runId = host.newId();
  const callers = toJson(caller, 'context') as JsonObject;
  const claimed = await spec.turnStore.begin(scope, {
    runId,
    sessionId,
    mode: 'accepted',
    from: 'head',
    init: {},
    inputs: [],
    context: callers,
    undo: request,
    ...defined({ expectHead, version: spec.version }),
  });
  const { run: ref = { runId, attempt: 1 } } = claimed;
  const turnBase = { ...claimed, run: ref };
  return await execute(context, {
    ref,
    sessionId,
    request,
    context: caller as JsonObject,
    turnBase,
  });
}

/** Continues an undo run of another process. With `failure` nothing more is undone: the run ends as failed. */
export async function resumeUndo(
  context: UndoContext,
  { run: record, claim, base }: TakenRun,
  options: {
    readonly request: UndoRequest;
    readonly failure?: WaymarkError | undefined;
    readonly deadLetter: boolean;
    readonly onProgress?: (() => void) | undefined;
  },
): Promise<void> {
  const { request, onProgress } = options;
  const { restoreContext } = context.spec;
  const callers = record.context ?? {};
  const ref = { runId: claim.runId, attempt: claim.attempt };
  const { sessionId } = record;
  const run: UndoRun = {
    ref,
    sessionId,
    request,
    context: restoreContext?.(callers) ?? callers,
    turnBase: { sessionId, run: ref, parent: claim.parent, base, nextIndex: claim.nextIndex },
    onProgress,
  };
  await execute(context, run, options);
}

async function execute(
  context: UndoContext,
  run: UndoRun,
  {
    failure: givenUp,
    deadLetter = false,
  }: { readonly failure?: WaymarkError | undefined; readonly deadLetter?: boolean } = {},
): Promise<Snapshot> {
  const { host, spec, scope } = context;
  const { store } = spec;
  const control = new StopControl();
  const stopHeartbeat = host.live.add({
    ref: run.ref,
    store: store ?? {},
    control,
    steering: { isHinted: false },
    recoverable: () => true,
  });
  const begun =
    givenUp === undefined ? undoAndRestore(context, run, control) : Promise.reject(givenUp);
  const work = begun
    .catch(async (error: unknown) => {
      const { runId } = run.ref;
      if (control.cause?.kind === 'lost') throw lostError(runId);
      if (error instanceof Refusal) {
        await supportOf(spec, 'runs').release(run.ref);
        throw error.cause;
      }
      const place = { agent: spec.name, sessionId: run.sessionId, runId };
      const failure = error instanceof UndoFailure ? error.cause : error;
      host.report(failure, { phase: 'run', ...place });
      // Another worker continues what could not be written.
      if (failure === error && isUnavailable(error)) {
        await store?.runs?.handOver(run.ref).catch(() => {});
        throw error;
      }
      const ended = failureOf(failure, control);
      await saveFailure(context, run, ended, { deadLetter });
      throw ended;
    })
    .finally(stopHeartbeat);
  host.background(work);
  const restored = await work;
  host.cache.delete(scope, run.sessionId);
  return restored;
}

/** The plan was not carried out, and nothing has been undone: the run leaves nothing behind. */
class Refusal extends Error {}

/** A call could not be undone, so the run fails. */
class UndoFailure extends Error {}

/** The step under which a run stores the keys that it undoes. */
const planStep = 'undo';

async function undoAndRestore(
  context: UndoContext,
  run: UndoRun,
  control: StopControl,
): Promise<Snapshot> {
  const { spec, scope } = context;
  const { ref, request, sessionId } = run;
  const runs = supportOf(spec, 'runs');
  const fenced = <Value>(work: () => Promise<Value>): Promise<Value> =>
    markingLost({ run: undefined, control }, work);
  const begun = await fenced(() => runs.getStep(ref, planStep));
  const keys = begun?.value ?? (await approvedKeys(context, run).catch(refuse));
  if (begun === undefined)
    await fenced(() => runs.saveStep(ref, planStep, [...(keys as string[])]));
  const undos = new UndoFinder(context);
  const undoAll = async (): Promise<void> => {
    const stored = await effectsOf(spec).list(scope, sessionId);
    for (const key of keys as readonly string[]) {
      const effect = stored.find((each) => each.key === key);
      if (effect === undefined || effect.undoneAt !== undefined) continue;
      control.signal.throwIfAborted();
      await undoEffect(context, run, { effect, undos, control });
      // A stale worker marks nothing.
      await fenced(() => effectsOf(spec).markUndone(ref, key));
      count('waymark.undone_effects', 1, {
        [names.agent]: spec.name,
        [genAi.toolName]: effect.tool,
      });
      run.onProgress?.();
    }
  };
  const move = (): Promise<Snapshot> =>
    fenced(() => supportOf(spec, 'timeline').restore(scope, request.to, { run: ref }));
  if (spec.workspace === undefined || request.workspace === false) {
    await undoAll();
    return await move();
  }
  const { restoreFilesInRun } = await import('./restore-files.ts');
  const onEdit = (base: StateBase): void => {
    run.turnBase = { ...run.turnBase, base };
  };
  let isChecked = begun !== undefined;
  const before = async (): Promise<void> => {
    isChecked = true;
    await undoAll();
  };
  const restoring = { spec, host: context.host, scope, context: run.context };
  const place = { turnBase: run.turnBase, to: request.to };
  // Nothing has been undone if another session works on the files, for example.
  return await restoreFilesInRun(restoring, place, { before, move, onEdit }).catch((error) =>
    isChecked ? Promise.reject(error) : refuse(error),
  );
}

function refuse(cause: unknown): never {
  throw isUnavailable(cause) ? cause : new Refusal('', { cause });
}

/** Compares the plan with the approved one. Returns the keys of the calls to undo, the newest first. */
async function approvedKeys(context: UndoContext, run: UndoRun): Promise<readonly string[]> {
  const { to, planId, force = false } = run.request;
  const plan = await readPlan(context, to);
  if (planId !== undefined && planId !== plan.id) {
    throw new WaymarkError(
      'ABORTED',
      'The plan is out of date: the head, an effect or its status has changed. Look at the new plan, and restore with that.',
      { details: { plan: toUndoPlan(context, plan) as unknown as JsonObject } },
    );
  }
  const rest = plan.calls.filter(({ undo }) => undo !== 'possible' && undo !== 'done');
  if (planId === undefined && !force && rest.length > 0) {
    const tools = [...new Set(rest.map(({ tool }) => `"${tool}"`))].join(', ');
    throw failedPrecondition(
      `Not everything can be undone: ${tools}. Look at the plan (planUndo) and pass it as \`undo\`, or pass \`force: true\`.`,
    );
  }
  const wanted = plan.calls.filter(
    ({ undo }) => undo === 'possible' || (force && undo === 'needed by another branch'),
  );
  return wanted.map(({ key }) => key);
}

async function undoEffect(
  { spec, host, scope }: UndoContext,
  run: UndoRun,
  {
    effect,
    undos,
    control,
  }: {
    readonly effect: StoredEffect;
    readonly undos: UndoFinder;
    readonly control: StopControl;
  },
): Promise<void> {
  const { tool: name, key, input, output = [] } = effect;
  const { clock } = host;
  const attributes = {
    [genAi.operation]: operations.undoTool,
    [genAi.toolName]: name,
    [genAi.conversationId]: run.sessionId,
    [backend.sessionId]: run.sessionId,
    [names.sessionId]: run.sessionId,
    [names.agent]: spec.name,
  };
  const options = { attributes, owner: scope.owner };
  await inSpan(`${operations.undoTool} ${name}`, options, async (span) => {
    try {
      const found = await undos.find(effect);
      if (found === undefined) {
        throw failedPrecondition(`This version of the code has no \`undo\` for "${name}".`);
      }
      const { action, tool } = found;
      const parsed = tool === undefined ? input : await tool.parseInput(input);
      for (let attempt = 1; ; attempt++) {
        const limit = timeoutSignal(clock, action.timeout, control.signal);
        const { signal } = limit;
        const call = { input: parsed, output: output[0], context: run.context, signal };
        try {
          const work = async (): Promise<unknown> =>
            action.run({ ...call, idempotencyKey: undoKeyOf(key) } as never);
          // A late result counts for nothing.
          await raceSignal(work(), signal);
          break;
        } catch (error) {
          if (attempt >= action.attempts || control.cause !== undefined) throw error;
        } finally {
          limit.release();
        }
        await clock.sleep(backoff(attempt, { baseMs: 200, maxMs: 5_000 }), control.signal);
      }
    } catch (error) {
      span.recordError(error);
      if (control.cause !== undefined) throw error;
      throw new UndoFailure('', { cause: undoFailed(name, error) });
    }
  });
}

function undoFailed(tool: string, cause: unknown): WaymarkError {
  const status = isWaymarkError(cause) ? cause.status : 'UNKNOWN';
  const what = `The call of "${tool}" could not be undone`;
  const next = 'The head has not moved. Make a new plan to see what was undone.';
  return new WaymarkError(status, `${what}: ${messageOf(cause)} ${next}`, {
    cause,
    publicMessage: `${what}. ${next}`,
    details: { tool },
  });
}

function failureOf(error: unknown, { cause }: StopControl): WaymarkError {
  if (cause?.kind === 'stop') {
    const text = 'The undo was stopped. Make a new plan to see what was undone.';
    return new WaymarkError('CANCELLED', text);
  }
  if (isWaymarkError(error)) return error;
  return new WaymarkError('UNKNOWN', messageOf(error), { cause: error });
}

/** Ends the run as failed. The head stays. */
async function saveFailure(
  { spec, scope }: UndoContext,
  { ref, turnBase }: UndoRun,
  failure: WaymarkError,
  { deadLetter }: { readonly deadLetter: boolean },
): Promise<void> {
  const { base, parent } = turnBase;
  if (base === undefined) {
    await supportOf(spec, 'runs').release(ref);
    return;
  }
  await spec.turnStore.commit(scope, turnBase, {
    base,
    state: base.state,
    stateHash: hashState(base.state),
    snapshotId: ref.runId,
    parentId: base.snapshotId,
    turnIndex: (parent?.turnIndex ?? -1) + 1,
    event: 'detach',
    status: 'failed',
    finishReason: 'failed',
    error: toErrorBody(failure),
    deadLetter,
    end: true,
  });
}
