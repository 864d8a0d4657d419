import { isWaymarkError } from '../../core/error.ts';
import type { RunRow, SessionRow, SnapshotRow } from '../../session/memory-store/tables.ts';
import { verify as verifyTables } from '../../session/memory-store/verify.ts';
import type { Fault } from '../../session/store.ts';
import type { Family } from './family.ts';
import type { Mirror } from './mirror.ts';
import { artifactHashes } from './state-delta.ts';

/** Reads a folder of sessions again and says what does not fit. */
export function verifyFolder(mirror: Mirror, folder: string, count: () => void): readonly Fault[] {
  let family: Family | undefined;
  try {
    family = mirror.reachCold(folder);
    // What is in memory may be better than what is on the disk.
    family?.journal.forget();
    family?.refresh();
    family?.states.cool();
  } catch (error) {
    return [{ kind: 'hash', message: messageOf(error) }];
  }
  if (family === undefined || family.scope === undefined) {
    return [{ kind: 'unreachable', message: `No session belongs in the folder "${folder}".` }];
  }
  return [...familyFaults(mirror, family, count), ...unreachable(family)];
}

function familyFaults(mirror: Mirror, family: Family, count: () => void): readonly Fault[] {
  const faults: Fault[] = [];
  const snapshots = new Map<string, SnapshotRow>();
  for (const { row } of family.rows.values()) {
    const problem = problemOf(row);
    if (problem === undefined) snapshots.set(row.id, row);
    else
      faults.push({
        kind: 'hash',
        sessionId: row.session.id,
        snapshotId: row.id,
        message: problem,
      });
  }
  const sessions = new Map<string, SessionRow>();
  const runs = new Map<string, RunRow>();
  for (const session of family.sessions.values()) {
    mirror.runFile(session).refresh();
    sessions.set(session.id, session);
    if (session.run !== undefined) runs.set(session.run.id, session.run);
  }
  const view = { ...mirror.tables, snapshots, sessions, runs };
  return [...faults, ...verifyTables(view, { onProgress: count })];
}

/** Why the state of a snapshot cannot be read. */
function problemOf(row: SnapshotRow): string | undefined {
  try {
    void row.state.artifacts;
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function unreachable({ artifacts, rows }: Family): readonly Fault[] {
  const hashes = [...rows.values()].flatMap(({ row }) => artifactHashes(row.state));
  return artifacts
    .others(new Set(hashes))
    .map((name) => ({ kind: 'unreachable', message: `No snapshot has the artifact "${name}".` }));
}

function messageOf(error: unknown): string {
  if (isWaymarkError(error)) return error.message;
  throw error;
}
