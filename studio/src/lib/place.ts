import { useSyncExternalStore } from 'react';

/** Where in the studio one is; it stands in the address, so that a reload and a link lead to the same place. */
export interface Place {
  readonly view: 'chat' | 'runs';
  readonly agent?: string;
  readonly session?: string;
  /** The selected snapshot; absent: the current state. */
  readonly snapshot?: string;
  /** The snapshot that it is compared with. */
  readonly base?: string;
}

/** Reads a place from the part of an address behind `#`. */
function parsePlace(hash: string): Place {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [head, ...rest] = path.split('/').map(decode);
  if (head === 'runs') return { view: 'runs' };
  const [agent, session, snapshot] = rest;
  const base = new URLSearchParams(search).get('base') ?? undefined;
  return {
    view: 'chat',
    ...(agent && { agent }),
    ...(session && { session }),
    ...(snapshot && { snapshot }),
    ...(base && { base }),
  };
}

/** The address of a place. */
export function placeHash({ view, agent, session, snapshot, base }: Place): string {
  if (view === 'runs') return '#/runs';
  const path = ['agents', agent, session, snapshot];
  const end = path.indexOf(undefined);
  const known = (end === -1 ? path : path.slice(0, end)).map((part) =>
    encodeURIComponent(part ?? ''),
  );
  return `#/${known.join('/')}${base ? `?base=${encodeURIComponent(base)}` : ''}`;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return '';
  }
}

/** Goes to a place; `replace` leaves no step to come back to. */
export function goTo(place: Place, { replace = false }: { readonly replace?: boolean } = {}): void {
  const hash = placeHash(place);
  if (hash === placeHash(current().place)) return;
  history[replace ? 'replaceState' : 'pushState'](null, '', hash);
  for (const listener of listeners) listener();
}

/** The present place; the component is drawn again when it changes. */
export function usePlace(): Place {
  return useSyncExternalStore(subscribe, () => current().place);
}

const listeners = new Set<() => void>();
let known: { readonly hash: string; readonly place: Place } | undefined;

function current(): { readonly hash: string; readonly place: Place } {
  const { hash } = location;
  if (known?.hash !== hash) known = { hash, place: parsePlace(hash) };
  return known;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  addEventListener('hashchange', listener);
  addEventListener('popstate', listener);
  return () => {
    listeners.delete(listener);
    removeEventListener('hashchange', listener);
    removeEventListener('popstate', listener);
  };
}
