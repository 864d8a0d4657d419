/** What a server under test is told. */
export interface ServerOptions {
  readonly directory: string;
  /** Pieces that its model streams in each turn. */
  readonly pieces: number;
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

/** The servers, and how each is asked. */
export const servers: Readonly<Record<string, Asked>> = {
  bare: {
    title: 'bare Node server',
    path: '/agents/bench/turns',
    body: (text) => ({ input: { message: message(text) } }),
    marker: 'modelChunk',
  },
  waymark: {
    title: 'Waymark, memory',
    path: '/agents/bench/turns',
    body: (text) => ({ input: { message: message(text) } }),
    marker: 'modelChunk',
  },
  'waymark-sqlite': {
    title: 'Waymark, SQLite',
    path: '/agents/bench/turns',
    body: (text) => ({ input: { message: message(text) } }),
    marker: 'modelChunk',
  },
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
  genkit: () => import('./genkit.ts'),
  ai: () => import('./ai.ts'),
};

/** Loads a server. */
export async function loadServer(name: string): Promise<Listen> {
  const module = modules[name];
  if (module === undefined) throw new Error(`No server "${name}".`);
  return (await module()).listen;
}
