import type { Pace } from '../lib/pace.ts';

/** What a server under test is told: how its model answers, and where its store is. */
export interface ServerOptions extends Pace {
  readonly directory: string;
  /** The address of an empty database, for those that need one. */
  readonly postgres?: string;
}

/** A server under test: listens on loopback and gives its port. */
export type Listen = (options: ServerOptions) => Promise<number>;

/** How a server is asked for a turn. */
export interface Asked {
  readonly title: string;
  readonly path: string;
  readonly body: (text: string) => object;
  /** What the first piece of the answer is known by. */
  readonly marker: string;
}

const message = (text: string): object => ({ role: 'user', content: [{ text }] });

const waymark = (title: string): Asked => ({
  title,
  path: '/agents/bench/turns',
  body: (text) => ({ input: { message: message(text) } }),
  marker: 'modelChunk',
});

/** The servers, and how each is asked. */
export const servers: Readonly<Record<string, Asked>> = {
  bare: waymark('bare Node server'),
  waymark: waymark('Waymark, memory'),
  'waymark-sqlite': waymark('Waymark, SQLite'),
  'waymark-file': waymark('Waymark, files'),
  'waymark-postgres': waymark('Waymark, Postgres'),
  genkit: {
    title: 'Genkit, memory (Express)',
    path: '/bench',
    body: (text) => ({ data: { message: message(text) }, init: {} }),
    marker: 'modelChunk',
  },
  ai: {
    title: 'AI SDK, no sessions',
    path: '/',
    body: (text) => ({ messages: [{ role: 'user', content: text }] }),
    marker: 'text-delta',
  },
};

const modules: Readonly<Record<string, () => Promise<{ readonly listen: Listen }>>> = {
  bare: () => import('./bare.ts'),
  waymark: () => import('./waymark.ts'),
  'waymark-sqlite': () => import('./waymark-sqlite.ts'),
  'waymark-file': () => import('./waymark-file.ts'),
  'waymark-postgres': () => import('./waymark-postgres.ts'),
  genkit: () => import('./genkit.ts'),
  ai: () => import('./ai.ts'),
};

/** Loads a server. */
export async function loadServer(name: string): Promise<Listen> {
  const module = modules[name];
  if (module === undefined) throw new Error(`No server "${name}".`);
  return (await module()).listen;
}
