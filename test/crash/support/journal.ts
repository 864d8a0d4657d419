import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';

/** How a turn was started: with a caller, accepted by a server, or detached. */
export type Mode = 'attached' | 'accepted' | 'detached';

/** What processes say that they have seen or done, each line written before anything follows from it. */
export type Line =
  /** A caller was told that these inputs are taken. */
  | {
      readonly kind: 'promised';
      readonly mode: Mode;
      readonly agent: string;
      readonly sessionId: string;
      readonly snapshotId: string;
      readonly texts: readonly string[];
    }
  /** A caller was told how it ended. */
  | {
      readonly kind: 'answered';
      readonly snapshotId: string;
      readonly status: string;
      readonly reason: string;
    }
  /** Something was done outside: by a tool, or in a step. */
  | { readonly kind: 'effect'; readonly key: string; readonly what: string }
  /** What was done under this key is recorded in the store, and must not be done again. */
  | { readonly kind: 'recorded'; readonly key: string }
  /** A model was asked for an answer to this. */
  | { readonly kind: 'asked'; readonly what: string }
  | { readonly kind: 'stopped' }
  | { readonly kind: 'error'; readonly status: string; readonly message: string };

export type Written = Line & { readonly pid: number };

/** A file that outlives the processes that write to it: one line a write, in the order in which they came. */
export interface Journal {
  write(line: Line): void;
  read(): Written[];
  /** Tells all processes of the journal that they may continue. */
  signal(word: string): void;
  hasSignal(word: string): boolean;
}

export function openJournal(path: string): Journal {
  return {
    write: (line) => appendFileSync(path, `${JSON.stringify({ ...line, pid: process.pid })}\n`),
    read: () =>
      readFileSync(path, { encoding: 'utf8', flag: 'a+' })
        .split('\n')
        .filter((text) => text !== '')
        .map((text) => JSON.parse(text) as Written),
    signal: (word) => writeFileSync(`${path}.${word}`, ''),
    hasSignal: (word) => existsSync(`${path}.${word}`),
  };
}
