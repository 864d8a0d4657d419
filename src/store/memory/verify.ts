import type { Link } from '../../session/compact-history.ts';
import type { History } from '../../session/history.ts';
import { isStateHash } from '../../session/session-state.ts';
import type { Fault } from '../contract/store.ts';
import type { Faults } from '../rules/maintenance-steps.ts';
import type { SessionRow, SnapshotRow, Tables } from './tables.ts';

/** Walks everything and says what does not fit. Turns may run between two steps; each step yields how many snapshots it looked at. */
export function* verifyInSteps(tables: Tables, faults: Faults): Generator<number, void> {
  const known = new Map<Link, History>();
  for (const row of tables.snapshots.values()) {
    faults.add(snapshotFaults(tables, row, known));
    yield 1;
  }
  for (const session of tables.sessions.values()) {
    faults.add(sessionFaults(tables, session));
    yield 0;
  }
  for (const run of tables.runs.values()) {
    if (run.session.run !== run) faults.add([fault('run', run, 'The run holds no session.')]);
  }
}

function snapshotFaults(tables: Tables, row: SnapshotRow, known: Map<Link, History>): Fault[] {
  const faults: Fault[] = [];
  const { parent, session, state } = row;
  const history = state.history.wakeAmong(known);
  if (!isStateHash({ ...state, history }, row.stateHash)) {
    faults.push(fault('hash', row, 'The state does not fit its hash.'));
  }
  if (parent !== undefined && tables.snapshots.get(parent.id) !== parent) {
    faults.push(fault('parent', row, `Its parent "${parent.id}" is not there.`));
  }
  if (row.index < 0 && session.head !== row) {
    faults.push(fault('unreachable', row, 'It is not listed, and not the head.'));
  }
  return faults;
}

function sessionFaults(tables: Tables, session: SessionRow): Fault[] {
  const { head, run } = session;
  const faults: Fault[] = [];
  if (head !== undefined && (head.status !== 'succeeded' || !tables.snapshots.has(head.id))) {
    faults.push(fault('head', head, 'The head is no succeeded snapshot of the store.'));
  }
  if (run !== undefined && tables.runs.get(run.id) !== run) {
    faults.push(fault('run', run, 'The session is held by a run that is not there.'));
  }
  return faults;
}

function fault(
  kind: Fault['kind'],
  { id, session }: { readonly id: string; readonly session: SessionRow },
  message: string,
): Fault {
  return { kind, sessionId: session.id, snapshotId: id, message };
}
