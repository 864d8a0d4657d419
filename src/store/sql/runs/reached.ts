import type { Cipher } from '../content/cipher.ts';
import { homeOf, snapshotPlace } from '../content/places.ts';
import { openHash } from '../snapshots/snapshot-row.ts';

/** An open run `r` with its session `z` and the row `t` whose state it has reached. */
export const reachedTables = `@runs r JOIN @sessions z ON z.row_id = r.session
  LEFT JOIN @snapshots t ON t.row_id = COALESCE(r.checkpoint, r.base)`;

export const reachedColumns = `z.owner, z.agent, z.id AS session_id, t.id AS reached_id, t.state_hash AS reached_hash`;

export interface ReachedRow {
  readonly id: Uint8Array;
  readonly owner: string;
  readonly agent: string;
  readonly session_id: string;
  readonly reached_id: Uint8Array | null;
  readonly reached_hash: Uint8Array | null;
}

/** The hash of the state that a run has reached, as the run's own snapshot keeps it. */
export function takenHash(row: ReachedRow, cipher: Cipher): Uint8Array {
  const hash = openHash(row, { id: row.reached_id, state_hash: row.reached_hash }, cipher);
  return cipher.sealHash(hash, snapshotPlace('state_hash', homeOf(row), row.id));
}
