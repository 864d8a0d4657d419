import type { Artifact } from '../../protocol/state.ts';
import { emptyState, type SessionState } from '../../session/session-state.ts';
import type { RunRequest } from '../contract/store.ts';
import { endRun, newRun } from '../memory/claim.ts';
import type { Checkpoint, RunRow, SessionRow, SnapshotRow, Tables } from '../memory/tables.ts';
import { applyChange, type CheckpointLine, type RunLine, runFields, toChange } from './rows.ts';
import { fromDelta, toDelta, type WrittenState } from './state-delta.ts';

/** The changes of an open run since it was saved; `undefined`: none. */
export function toRunLine(
  run: RunRow,
  saved: RunRow = { ...blankRun(run), createdAt: 0, start: undefined },
): RunLine | undefined {
  const steps = [...run.steps].slice(saved.steps.size);
  const inbox = run.inbox.slice(saved.inbox.length);
  const checkpoint = run.checkpoint === saved.checkpoint ? undefined : run.checkpoint;
  const line = {
    id: run.id,
    ...toChange(run, runFields, saved),
    ...(checkpoint && { checkpoint: toCheckpointLine(checkpoint, run.base, saved.checkpoint) }),
    ...(steps.length > 0 && {
      steps: steps.map(([key, value]) => (value === undefined ? { key } : { key, value })),
    }),
    ...(inbox.length > 0 && { inbox }),
  };
  return Object.keys(line).length === 1 ? undefined : line;
}

function toCheckpointLine(
  { state, stateHash, ...place }: Checkpoint,
  base: SnapshotRow | undefined,
  before: Checkpoint | undefined,
): CheckpointLine {
  if (stateHash === base?.stateHash) return place;
  const bases: WrittenState[] = [];
  if (before !== undefined) bases.push({ id: 'checkpoint', state: before.state });
  if (base !== undefined) bases.push(base);
  return { ...place, stateHash, state: toDelta(state, bases) };
}

/** The means to read a line of a run. */
interface RunContext {
  readonly rowOf: (id: string) => SnapshotRow;
  readonly readArtifact: (hash: string) => Artifact;
}

/** Makes the open run of a session as a line says that it is. */
export function applyRun(
  tables: Tables,
  session: SessionRow,
  { id, checkpoint, steps = [], inbox = [], ...fields }: RunLine,
  context: RunContext,
): void {
  if (session.run !== undefined && session.run.id !== id) endRun(tables, session.run);
  const start = fields.start === undefined ? undefined : context.rowOf(String(fields.start));
  const createdAt = Date.parse(String(fields.createdAt));
  const run = session.run ?? blankRun({ id, session, createdAt, start });
  session.run = run;
  tables.runs.set(id, run);
  applyChange(run, fields, runFields, context.rowOf);
  for (const { key, value } of steps) run.steps.set(key, value);
  if (inbox.length > 0) run.inbox = [...run.inbox, ...inbox];
  if (checkpoint !== undefined) run.checkpoint = toCheckpoint(run, checkpoint, context);
  tables.emitter.emit(id);
}

/** A run as it is where its first line says nothing else. */
function blankRun(run: Pick<RunRow, 'id' | 'session' | 'createdAt' | 'start'>): RunRow {
  const { id, session, createdAt, start } = run;
  const request: RunRequest = { mode: 'attached', inputs: [] };
  return newRun({ id, session, createdAt, start, request, worker: '', ttl: 0, turnIndex: 0 });
}

/** A checkpoint whose state is made when it is used. */
function toCheckpoint(
  { base, checkpoint: before }: RunRow,
  { state: delta, stateHash = base?.stateHash ?? '', ...place }: CheckpointLine,
  { readArtifact }: RunContext,
): Checkpoint {
  const read = (): SessionState => {
    if (delta === undefined) return base?.state ?? emptyState;
    const from = delta.base === 'checkpoint' ? before : base;
    return fromDelta(delta, from?.state ?? emptyState, readArtifact);
  };
  let state: SessionState | undefined;
  return {
    ...place,
    stateHash,
    get state() {
      state ??= read();
      return state;
    },
  };
}
