import { useSyncExternalStore } from 'react';

/** The pages about all agents that have no parts of their own. */
const pages = ['inbox', 'memory', 'replay', 'runs', 'traces', 'usage'] as const;

type Page = (typeof pages)[number];

/** Where in the studio one is; it stands in the address, so that a reload and a link lead to the same place. */
export interface Place {
  readonly view: 'chat' | 'tools' | Page;
  readonly agent?: string;
  /** The tool source, such as an MCP server, whose tool is open. */
  readonly source?: string;
  /** The tool that is open. */
  readonly tool?: string;
  readonly session?: string;
  /** The selected snapshot; absent: the current state. */
  readonly snapshot?: string;
  /** The snapshot that it is compared with. */
  readonly base?: string;
  /** Whose sessions are shown; absent: those without an owner. */
  readonly owner?: string | undefined;
}

/** Reads a place from the part of an address behind `#`. */
function parsePlace(hash: string): Place {
  const [path = '', search = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const query = new URLSearchParams(search);
  const owner = query.get('owner');
  return { ...parsePath(path, query.get('base')), ...(owner && { owner }) };
}

function parsePath(path: string, base: string | null): Place {
  const [head, ...rest] = path.split('/').map(decode);
  const page = pages.find((each) => each === head);
  if (page) return { view: page };
  if (head === 'tools') return parseTool(rest);
  const [agent, session, snapshot] = rest;
  return {
    view: 'chat',
    ...(agent && { agent }),
    ...(session && { session }),
    ...(snapshot && { snapshot }),
    ...(base && { base }),
  };
}

function parseTool([kind, owner, tool]: readonly string[]): Place {
  if ((kind !== 'agent' && kind !== 'source') || !owner || !tool) return { view: 'tools' };
  return { view: 'tools', [kind]: owner, tool };
}

function toolHash({ agent, source, tool }: Place): string {
  const owner = agent ?? source;
  if (owner === undefined || tool === undefined) return '#/tools';
  const path = [agent === undefined ? 'source' : 'agent', owner, tool];
  return `#/tools/${path.map(encodeURIComponent).join('/')}`;
}

/** The address of a place. The owner stays the same unless the place names one. */
export function placeHash(place: Place): string {
  const owner = 'owner' in place ? place.owner : current().place.owner;
  const search = new URLSearchParams({
    ...(place.base && { base: place.base }),
    ...(owner !== undefined && { owner }),
  });
  return search.size === 0 ? pathOf(place) : `${pathOf(place)}?${search}`;
}

function pathOf(place: Place): string {
  const { view, agent, session, snapshot } = place;
  if (view === 'tools') return toolHash(place);
  if (view !== 'chat') return `#/${view}`;
  const path = ['agents', agent, session, snapshot];
  const end = path.indexOf(undefined);
  const known = (end === -1 ? path : path.slice(0, end)).map((part) =>
    encodeURIComponent(part ?? ''),
  );
  return `#/${known.join('/')}`;
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

/** Whose sessions are shown at this moment. */
export function currentOwner(): string | undefined {
  return current().place.owner;
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
