import type { JsonObject } from '../../../core/json/json.ts';
import type { SessionInfo } from '../../../protocol/session.ts';
import type { Cipher } from '../content/cipher.ts';
import { openJson, parseStored } from '../content/open-json.ts';
import { sessionPlace } from '../content/places.ts';
import type { SqlValue } from '../database/query.ts';
import { type HolderRow, holderColumns, isHeld } from '../runs/open-run.ts';
import { iso, uuidText } from '../values/bytes.ts';

/** Columns of the session `z` with its head `h` and its open run `r`. */
export const sessionColumns = `
  z.row_id, z.id, z.owner, z.agent, z.title, z.metadata, z.forked_from, z.started_by_agent, z.started_by_session,
  z.started_by_snapshot, z.created_at, z.updated_at, h.id AS head_id, h.turn AS head_turn,
  ${holderColumns}`;

export const sessionTables = `@sessions z
  LEFT JOIN @snapshots h ON h.row_id = z.head
  LEFT JOIN @runs r ON r.session = z.row_id`;

export interface SessionRow extends HolderRow {
  readonly row_id: number;
  readonly id: string;
  readonly owner: string;
  readonly agent: string;
  readonly title: SqlValue;
  readonly metadata: SqlValue;
  readonly forked_from: string | null;
  readonly started_by_agent: string | null;
  readonly started_by_session: string | null;
  readonly started_by_snapshot: string | null;
  readonly created_at: number;
  readonly updated_at: number;
  readonly head_id: Uint8Array | null;
  readonly head_turn: number | null;
}

/** A session without its state. */
export function toSessionInfo(row: SessionRow, cipher: Cipher): SessionInfo {
  const running = isHeld(row) && row.run_id !== null ? uuidText(row.run_id) : undefined;
  const startedBy = startedByOf(row);
  return {
    sessionId: row.id,
    agent: row.agent,
    ...(row.title === null ? {} : { title: contentOf(row, 'title', cipher) as string }),
    ...(row.metadata === null
      ? {}
      : { metadata: contentOf(row, 'metadata', cipher) as JsonObject }),
    ...(row.head_id === null ? {} : { headId: uuidText(row.head_id) }),
    turnCount: row.head_turn === null ? 0 : row.head_turn + 1,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
    ...(running === undefined ? {} : { running }),
    ...(row.forked_from === null
      ? {}
      : {
          forkedFrom: parseStored(row.forked_from, () => 'sessions.forked_from') as NonNullable<
            SessionInfo['forkedFrom']
          >,
        }),
    ...(startedBy === undefined ? {} : { startedBy }),
  };
}

/** A session's title or metadata. */
export function contentOf(row: SessionRow, column: 'title' | 'metadata', cipher: Cipher): unknown {
  const home = { owner: row.owner, agent: row.agent, sessionId: row.id };
  return openJson(row[column], sessionPlace(column, home), cipher);
}

function startedByOf(row: SessionRow): SessionInfo['startedBy'] {
  const { started_by_agent: agent, started_by_session: sessionId } = row;
  if (agent === null || sessionId === null) return undefined;
  const snapshotId = row.started_by_snapshot;
  return { agent, sessionId, ...(snapshotId === null ? {} : { snapshotId }) };
}
