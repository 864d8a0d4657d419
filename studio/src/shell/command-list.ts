import { createSource } from '../lib/observable.ts';

/** Something that can be done here: by its name in the palette, and by its key where it has one. */
export interface PageCommand {
  readonly name: string;
  /** Works anywhere but where one writes. */
  readonly key?: string;
  readonly run: () => void;
  /** The required selection; the palette leaves such a command out. */
  readonly needs?: string | undefined;
}

/** The keys and names of commands about the selected snapshot and the page; the help lists them. */
export const commandNames = {
  restore: { key: 'r', name: 'Restore the selected snapshot' },
  fork: { key: 'f', name: 'Fork the selected snapshot into a new session' },
  compare: { key: 'c', name: 'Compare the selected snapshot with now' },
  // A small l goes to the branch on the right.
  label: { key: 'L', name: 'Label the selected snapshot' },
  search: { key: '/', name: 'Search sessions' },
  help: { key: '?', name: 'Show keyboard shortcuts' },
} as const;

/** The commands for the open session; empty if there is none. */
export const sessionCommands = createSource<readonly PageCommand[]>([]);
