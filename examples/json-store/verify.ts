import { type Fault, fromPlainState, isStateHash, type VerifyOptions } from 'waymark/store';
import { sessionOf, snapshotAt, type Transaction } from './tables.ts';

/** Walks everything and reports what does not match. */
export function verify(
  tx: Transaction,
  onProgress?: VerifyOptions['onProgress'],
): readonly Fault[] {
  const faults: Fault[] = [];
  const { sessions, snapshots, runs } = tx.data;
  const all = Object.values(snapshots);
  for (const [done, row] of all.entries()) {
    const session = sessionOf(tx, row);
    const add = (kind: Fault['kind'], message: string): unknown =>
      faults.push({ kind, sessionId: session.id, snapshotId: row.id, message });
    if (!isStateHash(fromPlainState(row.state), row.stateHash)) {
      add('hash', 'The state does not match its hash.');
    }
    if (row.parent !== null && !(row.parent in snapshots)) {
      add('parent', `Its parent "${row.parent}" is missing.`);
    }
    if (row.index < 0 && session.head !== row.id) {
      add('unreachable', 'It is neither listed nor the head.');
    }
    onProgress?.(done + 1, { total: all.length });
  }
  for (const { id: sessionId, head, run } of Object.values(sessions)) {
    if (head !== null && snapshotAt(tx, head)?.status !== 'succeeded') {
      faults.push({ kind: 'head', sessionId, message: 'The head is not a succeeded snapshot.' });
    }
    if (run !== null && !(run in runs)) {
      faults.push({ kind: 'run', sessionId, message: 'The run that holds it is missing.' });
    }
  }
  return faults;
}
