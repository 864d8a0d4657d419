import type { CommitWrite, MemoryPlace } from '../../store/contract/store.ts';
import type { AgentSpec } from '../contract/spec.ts';
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
