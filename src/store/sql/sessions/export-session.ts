import { WaymarkError } from '../../../core/error.ts';
import type { SessionInfo } from '../../../protocol/session.ts';
import type { ExportRow } from '../../../session/export-session.ts';
import type { Scope } from '../../contract/store.ts';
import type { Plan } from '../database/query.ts';
import { StateReader, totalsOf, treeOf } from '../history/session-states.ts';
import type { StateContext } from '../history/state-rows.ts';
import { toSnapshot } from '../snapshots/snapshot-row.ts';
import { uuidText } from '../values/bytes.ts';
import { code } from '../values/codes.ts';
import { toSessionInfo } from './session-row.ts';
import { findSession } from './sessions.ts';

/** A session with its snapshots, parents first, on its way out. */
export interface ExportedSession {
  readonly info: SessionInfo;
  readonly rows: readonly ExportRow[];
}

/** Reads a whole session; `undefined` when there is none. */
export function* exportSession(
  scope: Scope,
  sessionId: string,
  context: StateContext,
): Plan<ExportedSession | undefined> {
  const session = yield* findSession(scope, sessionId);
  if (session === undefined) return undefined;
  const tree = (yield* treeOf(session.row_id)).filter((row) => row.status !== code.pending);
  const reader = new StateReader(tree, context);
  const rows: ExportRow[] = [];
  for (const row of tree) {
    const read = yield* reader.read(row);
    if (read.kind === 'damaged') {
      throw new WaymarkError('DATA_LOSS', `Snapshot "${uuidText(row.id)}": ${read.message}`);
    }
    const reading = { now: row.now, orphaned: row.orphaned === 1 };
    const snapshot = toSnapshot(row, reading, context.cipher);
    rows.push({ snapshot, totals: totalsOf(row), state: read.state });
  }
  return { info: toSessionInfo(session, context.cipher), rows };
}
