import type { Place } from '../lib/place.ts';
import type { IconName } from '../ui/icon.tsx';

/** A page about all agents. */
export interface Page {
  readonly view: Exclude<Place['view'], 'chat'>;
  readonly name: string;
  readonly icon: IconName;
}

/** The pages about all agents, as the header and the palette name them. */
export const pages: readonly Page[] = [
  { view: 'inbox', name: 'Inbox', icon: 'inbox' },
  { view: 'runs', name: 'Runs', icon: 'runs' },
  { view: 'memory', name: 'Memory', icon: 'memory' },
  { view: 'tools', name: 'Tools', icon: 'tool' },
  { view: 'traces', name: 'Traces', icon: 'traces' },
  { view: 'usage', name: 'Usage', icon: 'usage' },
];
