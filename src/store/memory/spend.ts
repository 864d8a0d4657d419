import type { Spend, SpendFilter, SpendSupport } from '../contract/store.ts';
import {
  addCounts,
  dayLength,
  fitsSpend,
  refusalOf,
  type StoredReservation,
  type StoredSpend,
  spendKey,
  spendRows,
  toSums,
  toTotal,
} from '../rules/spend.ts';
import type { SpendTable, Tables } from './tables.ts';

/** Counters in memory, by owner and by what tells them apart. */
export class SpendCounters implements SpendTable {
  readonly #owners = new Map<string, Map<string, StoredSpend>>();
  /** Reservations that are not settled, by owner and id. */
  readonly #reservations = new Map<string, Map<string, StoredReservation>>();

  add(spend: Spend, day: number): void {
    const { owner = '', agent, sessionId: session, settles = [] } = spend;
    for (const row of spendRows(spend)) this.addRow({ ...row, owner, agent, session, day });
    this.settle(owner, settles);
  }

  reserve(reservation: StoredReservation): void {
    const { owner, id } = reservation;
    const known = this.#reservations.get(owner) ?? new Map<string, StoredReservation>();
    this.#reservations.set(owner, known.set(id, reservation));
  }

  settle(owner: string, ids: readonly string[]): void {
    const known = this.#reservations.get(owner);
    for (const id of ids) known?.delete(id);
    if (known?.size === 0) this.#reservations.delete(owner);
  }

  reservations(owner: string): readonly StoredReservation[] {
    return [...(this.#reservations.get(owner)?.values() ?? [])];
  }

  addRow(row: StoredSpend): void {
    const { owner, agent, session, day, by_agent: by, model, currency } = row;
    const rows = this.#owners.get(owner) ?? new Map<string, StoredSpend>();
    this.#owners.set(owner, rows);
    const key = JSON.stringify([agent, session, day, by, model, currency]);
    const known = rows.get(key);
    rows.set(key, known === undefined ? row : { ...row, ...addCounts(known, row) });
  }

  eraseOwner(owner: string): void {
    this.#owners.delete(owner);
    this.#reservations.delete(owner);
  }

  *rows(filter: SpendFilter): Generator<StoredSpend> {
    const { owner } = filter;
    const owners =
      owner === undefined ? [...this.#owners.values()] : [this.#owners.get(owner ?? '')];
    for (const rows of owners) {
      for (const row of rows?.values() ?? []) if (fitsSpend(row, filter)) yield row;
    }
  }
}

export function spendSupport(tables: Tables): SpendSupport {
  const counters = tables.spend;
  return {
    async add(spend) {
      counters.add(spend, dayOf(tables));
    },
    async reserve(reservation) {
      const { owner = '', agent, sessionId: session, id, holder, amounts, ttl } = reservation;
      const now = tables.clock.now();
      const rows = [...counters.rows({ owner: owner === '' ? null : owner })];
      const refusal = refusalOf(reservation, rows, counters.reservations(owner), now);
      if (refusal !== undefined) return refusal;
      const row = { id, owner, agent, session, day: dayOf(tables), holder, amounts };
      counters.reserve({ ...row, expiresAt: now + ttl });
      return undefined;
    },
    total: async (filter) => toTotal(counters.rows(filter)),
    sums: async (by, filter) => {
      const rows = Array.from(counters.rows(filter), (row) => ({ ...row, key: spendKey(row, by) }));
      return toSums(rows);
    },
  };
}

function dayOf({ clock }: Tables): number {
  return Math.floor(clock.now() / dayLength);
}

export function addSpend(tables: Tables, spend: Spend | undefined): void {
  if (spend !== undefined) tables.spend.add(spend, dayOf(tables));
}
