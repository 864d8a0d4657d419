import { WaymarkError } from '../../core/error.ts';

/** Counts what is open, for everybody and per principal, and refuses what would be too much. */
export interface Slots {
  /** Takes a slot, or is `RESOURCE_EXHAUSTED`; the returned function gives it back, once. */
  take(principal: string | undefined): () => void;
  /** How many are taken. */
  readonly size: number;
}

/** New slots; without a principal only the total counts, as there are no users to share between. */
export function createSlots(
  what: string,
  { total, perPrincipal }: { readonly total: number; readonly perPrincipal: number },
): Slots {
  const taken = new Map<string, number>();
  let size = 0;

  return {
    get size() {
      return size;
    },
    take(principal) {
      const mine = principal === undefined ? 0 : (taken.get(principal) ?? 0);
      if (size >= total) throw exhausted(`The server has ${total} ${what} open`);
      if (mine >= perPrincipal) throw exhausted(`You have ${perPrincipal} ${what} open`);
      size++;
      if (principal !== undefined) taken.set(principal, mine + 1);
      let given = false;
      return () => {
        if (given) return;
        given = true;
        size--;
        if (principal === undefined) return;
        const left = (taken.get(principal) ?? 1) - 1;
        if (left > 0) taken.set(principal, left);
        else taken.delete(principal);
      };
    },
  };
}

function exhausted(what: string): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `${what}, which is the limit. Try again when one has ended.`,
    { details: { retryAfter: 1 } },
  );
}
