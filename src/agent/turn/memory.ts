import type { CommitWrite, MemoryPlace } from '../../store/contract/store.ts';
import { turnScope } from '../../store/rules/memory.ts';
import type { AgentSpec } from '../contract/spec.ts';
import { mayWrite, scopeFor } from '../memory/definition.ts';
import { TurnMemory } from '../memory/turn-memory.ts';
import type { AgentHost } from '../persistence/host.ts';
import type { InvocationState } from './invocation-state.ts';
import type { ActiveRun } from './turn-state.ts';

/** The memory of a run; `undefined` if its agent has none, or the client holds its state. */
export function memoryOf(
  invocation: InvocationState,
  run: ActiveRun | undefined = invocation.run,
): TurnMemory | undefined {
  const { spec, scope, host, position, lineage } = invocation;
  const support = spec.store?.memory;
  if (spec.memory === undefined || support === undefined || run === undefined) return undefined;
  if (invocation.memory?.run === run) return invocation.memory.of;
  const of = new TurnMemory({
    ...{ support, scope, runId: run.runId },
    sessionId: position.sessionId,
    baseId: lineage.savedBase?.snapshotId,
    isRepeated: (run.turnBase.run?.attempt ?? 1) > 1,
    newId: host.newId,
    now: () => host.clock.now(),
  });
  invocation.memory = { run, of };
  return of;
}

/** The memory of a run once it is loaded. If that fails, the turn continues without memory, and saves none. */
export async function loadedMemory(
  invocation: InvocationState,
  run?: ActiveRun,
): Promise<TurnMemory | undefined> {
  const memory = memoryOf(invocation, run);
  try {
    await memory?.load();
  } catch (error) {
    invocation.failures.report(error, 'store');
  }
  return memory;
}

/** The definition and the scope of a turn whose memory is that of the app, not of a replay, and who may write. */
function written({ spec, scope: { owner }, request }: InvocationState) {
  const { memory: definition, store } = spec;
  if (definition === undefined || store?.memory !== definition.support) return undefined;
  if (definition.scope === 'owner' && owner === undefined) return undefined;
  const user = { owner, agent: spec.name, context: request.context };
  if (!mayWrite(definition, user)) return undefined;
  return { definition, scope: scopeFor(definition, user) };
}

/** Keeps a number for what is extracted from the turn. */
export function reserveExtraction(invocation: InvocationState, memory: TurnMemory): void {
  if (invocation.spec.memory?.extractor === undefined) return;
  const found = written(invocation);
  if (found !== undefined) memory.reserve(turnScope(found.scope));
}

/** Embeds what a turn has written, and extracts entries from it, in the background. */
export async function workLater(
  invocation: InvocationState,
  {
    snapshotId,
    end,
    from,
  }: Pick<CommitWrite, 'snapshotId' | 'end'> & {
    /** The index of the first message of the turn. */
    readonly from: number;
  },
): Promise<void> {
  const found = written(invocation);
  if (found === undefined) return;
  const { definition, scope } = found;
  const { spec, position } = invocation;
  definition.vectors?.embedLater({ support: definition.support, scope });
  if (!end || definition.extractor === undefined) return;
  const turn = {
    ...{ agent: spec.name, sessionId: position.sessionId, snapshotId },
    ...{ from, scope: scope.key },
    ...(scope.owner !== undefined && { scopeOwner: scope.owner }),
  };
  try {
    await definition.extractor.start(turn, invocation.scope.owner);
  } catch (error) {
    invocation.failures.report(error, 'store');
  }
}

/** The ids that a fork gives its original, if that has never used memory. */
export function newMemoryPlace({ newId }: Pick<AgentHost, 'newId'>): MemoryPlace {
  return { family: newId(), lane: newId() };
}

/** The part of a commit that is no turn, such as an edit: it has the memory of the snapshot that it continues from. */
export async function inheritedMemory(
  { memory, store }: AgentSpec,
  owner: string | undefined,
  snapshotId: string | undefined,
): Promise<Pick<CommitWrite, 'memory'>> {
  if (memory === undefined || snapshotId === undefined) return {};
  const { path = [] } = (await store?.memory?.note(owner, snapshotId)) ?? {};
  return path.length === 0 ? {} : { memory: { versions: [], note: { path, given: [] } } };
}
