import { failedPrecondition, invalid, type WaymarkError } from '../../core/error.ts';
import { defined, type Json } from '../../core/json/json.ts';
import { applyPatch, type JsonPatch } from '../../core/json/patch.ts';
import { parse } from '../../core/schema/schema.ts';
import { withoutTree } from '../../protocol/artifacts.ts';
import { parseShape } from '../../protocol/parse.ts';
import { type StateEdit, stateEdit } from '../../protocol/requests.ts';
import { type EditNote, editNote, type Snapshot } from '../../protocol/snapshot.ts';
import type { SessionState } from '../../session/session-state.ts';
import { WorkingState } from '../../session/working-state.ts';
import type { CommitWrite, ExpectHead, Scope } from '../../store/contract/store.ts';
import { notFound } from '../../store/rules/errors.ts';
import { checkCustomSize, maxCustomLength } from '../../store/rules/size-limits.ts';
import { highestTotals } from '../../store/rules/spend.ts';
import type { AgentSpec } from '../contract/spec.ts';
import { storedState } from '../contract/stored-state.ts';
import type { TurnBase, TurnRequest } from '../contract/turn-store.ts';
import type { AgentHost } from '../persistence/host.ts';
import { inheritedMemory } from '../turn/memory.ts';

interface EditContext {
  readonly spec: AgentSpec;
  readonly host: AgentHost;
  readonly scope: Scope;
}

/** Saves a changed state as a new snapshot that continues from another one, and returns its id. */
export async function editSnapshot(
  context: EditContext,
  snapshotId: string,
  given: { readonly change: unknown; readonly note: EditNote } & ExpectHead,
): Promise<string> {
  const { spec, host, scope } = context;
  host.checkOpen();
  const change = parseShape(stateEdit, given.change, 'edit');
  const edit = parseShape(editNote, given.note, 'note of an edit');
  const found = await spec.turnStore.load(scope, { snapshotId });
  if (found === undefined) throw notFound('snapshot', snapshotId);
  const request = { ...given, sessionId: found.snapshot.sessionId, from: { snapshotId } };
  return await saveEdit(context, { ...request, loaded: found }, async (turnBase) => {
    if (turnBase.parent?.answered === true) throw alreadyAnswered();
    const working = await edited(spec, turnBase.state ?? found.state, change);
    return {
      ...(turnBase.base && { base: turnBase.base }),
      ...positionOf(turnBase, found.snapshot),
      state: working.state,
      stateHash: working.hash(),
      parentId: snapshotId,
      edit,
    };
  });
}

/**
 * Saves the partial state of an aborted run as a new snapshot that continues from where the run started, and returns its id. The
 * aborted snapshot stays as it is.
 */
export async function savePartial(
  context: EditContext,
  runId: string,
  { note, ...given }: { readonly note: EditNote } & ExpectHead,
): Promise<string> {
  const { spec, host, scope } = context;
  host.checkOpen();
  const found = await spec.turnStore.load(scope, { snapshotId: runId });
  if (found === undefined) throw notFound('snapshot', runId);
  const { sessionId, parentId, status, turnIndex } = found.snapshot;
  if (status !== 'aborted') throw notAborted(status);
  const state = await storedState(spec, found.state);
  const from = parentId === undefined ? null : { snapshotId: parentId };
  const request = { ...given, sessionId, from, limited: spec.limits.session !== undefined };
  return await saveEdit(context, request, async (turnBase) => {
    const working = new WorkingState(state);
    const stateHash = working.hash();
    if (stateHash === new WorkingState(turnBase.state ?? spec.freshState).hash()) {
      throw failedPrecondition(
        'The run was aborted before it saved a partial state. Continue from the snapshot before it.',
      );
    }
    const totals = highestTotals(turnBase.parent?.totals, turnBase.failedTotals);
    return {
      base: found,
      state: working.state,
      stateHash,
      ...(parentId !== undefined && { parentId }),
      turnIndex,
      finishReason: 'aborted',
      ...(totals && { totals }),
      edit: { reason: `Partial state of the aborted run ${runId}.`, ...note },
    };
  });
}

/** Claims the session for a write that is no turn, and saves it. */
async function saveEdit(
  { spec, host, scope }: EditContext,
  {
    sessionId,
    from,
    loaded,
    limited,
    expectHead,
  }: Pick<TurnRequest, 'sessionId' | 'from' | 'loaded' | 'limited'> & ExpectHead,
  write: (
    turnBase: TurnBase,
  ) => Promise<Omit<CommitWrite, 'snapshotId' | 'event' | 'status' | 'end'>>,
): Promise<string> {
  const runId = host.newId();
  const turnBase = await spec.turnStore.begin(scope, {
    runId,
    sessionId,
    mode: 'attached',
    from,
    init: {},
    inputs: [],
    context: {},
    ...defined({ limited, loaded, expectHead }),
  });
  try {
    const change = await write(turnBase);
    await spec.turnStore.commit(scope, turnBase, {
      ...change,
      ...(await inheritedMemory(spec, scope.owner, change.parentId)),
      snapshotId: runId,
      event: 'edit',
      status: 'succeeded',
      end: true,
    });
  } catch (error) {
    await spec.turnStore.release(turnBase).catch(() => {});
    throw error;
  }
  return runId;
}

/** An edit is no turn: it stands where its parent stands, and a question that waits there still waits. */
function positionOf(
  { parent }: TurnBase,
  { turnIndex, finishReason }: Snapshot,
): Pick<CommitWrite, 'turnIndex' | 'finishReason' | 'totals'> {
  return {
    turnIndex,
    ...(finishReason && { finishReason }),
    ...(parent?.totals && { totals: parent.totals }),
  };
}

async function edited(
  spec: AgentSpec,
  state: SessionState,
  { custom, customPatch, artifacts = [], removeArtifacts = [] }: StateEdit,
): Promise<WorkingState> {
  if (custom !== undefined && customPatch !== undefined) {
    throw invalid('Pass `custom` or `customPatch`, not both.');
  }
  const working = new WorkingState(state);
  const before = working.hash();
  if (customPatch !== undefined) working.setCustom(patched(state.custom, customPatch as JsonPatch));
  else if (custom !== undefined) working.setCustom(custom);
  for (const name of removeArtifacts) {
    const all = withoutTree(working.state.artifacts);
    const kept = all.filter((artifact) => artifact.name !== name);
    if (kept.length === all.length) {
      throw invalid(`There is no artifact "${name.slice(0, 64)}" to remove.`);
    }
    working.setArtifacts(kept);
  }
  working.addArtifacts(artifacts);
  if (working.hash() === before) {
    throw invalid(
      'The edit changes nothing. Pass a changed `custom`, `customPatch` or `artifacts`.',
    );
  }
  const after = working.state.custom;
  if (after !== undefined && after !== state.custom) {
    checkCustomSize(after, spec.limits.session?.customLength ?? maxCustomLength);
    if (spec.stateSchema !== undefined) {
      await parse(spec.stateSchema, after, 'The edited custom state');
    }
  }
  return working;
}

function patched(custom: Json | undefined, patch: JsonPatch): Json {
  try {
    return applyPatch(custom ?? null, patch);
  } catch (error) {
    throw invalid(
      `The patch does not fit the custom state: ${error instanceof Error ? error.message : error}`,
      { cause: error },
    );
  }
}

/** The edit would wait for a second answer, which would run the tool again. */
function alreadyAnswered(): WaymarkError {
  return failedPrecondition(
    'The interrupt of this snapshot has been answered already, so it cannot be edited in this session. Fork it and edit the fork.',
  );
}

function notAborted(status: string): WaymarkError {
  const why =
    status === 'pending'
      ? 'The run has not ended yet. Abort it first.'
      : `\`partial\` is for aborted background runs, and this snapshot is ${status}.`;
  return failedPrecondition(why);
}
