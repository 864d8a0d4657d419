import type { System } from './system.ts';

/** A system, and what a program that uses it installs and imports. */
export interface Listed {
  readonly title: string;
  readonly load: () => Promise<{ readonly system: System }>;
  /** Whose version is told. */
  readonly packages: readonly string[];
  /** For the cost of having it: packages to install, modules to import. */
  readonly footprints: readonly Footprint[];
}

export interface Footprint {
  readonly title: string;
  readonly packages: readonly string[];
  readonly imports: readonly string[];
}

/** All systems, in the order of the tables. */
export const systems: Readonly<Record<string, Listed>> = {
  waymark: {
    title: 'Waymark',
    load: () => import('./waymark.ts'),
    packages: ['waymark'],
    footprints: [
      { title: 'Waymark', packages: ['waymark'], imports: ['waymark'] },
      {
        title: 'Waymark + SQLite',
        packages: ['waymark'],
        imports: ['waymark', 'waymark/sqlite'],
      },
      {
        title: 'Waymark + Postgres',
        packages: ['waymark', 'pg'],
        imports: ['waymark', 'waymark/postgres', 'pg'],
      },
      {
        title: 'Waymark + SQLite + server',
        packages: ['waymark', 'hono', '@hono/node-server', 'ws'],
        imports: ['waymark', 'waymark/sqlite', 'waymark/server', '@hono/node-server', 'ws'],
      },
    ],
  },
  genkit: {
    title: 'Genkit',
    load: () => import('./genkit.ts'),
    packages: ['genkit', '@genkit-ai/express'],
    footprints: [{ title: 'Genkit (agents)', packages: ['genkit'], imports: ['genkit/beta'] }],
  },
  langgraph: {
    title: 'LangGraph',
    load: () => import('./langgraph.ts'),
    packages: [
      '@langchain/langgraph',
      '@langchain/core',
      '@langchain/langgraph-checkpoint-sqlite',
      '@langchain/langgraph-checkpoint-postgres',
      'better-sqlite3',
    ],
    footprints: [
      {
        title: 'LangGraph',
        packages: ['@langchain/langgraph', '@langchain/core'],
        imports: ['@langchain/langgraph'],
      },
      {
        title: 'LangGraph + SQLite',
        packages: [
          '@langchain/langgraph',
          '@langchain/core',
          '@langchain/langgraph-checkpoint-sqlite',
        ],
        imports: ['@langchain/langgraph', '@langchain/langgraph-checkpoint-sqlite'],
      },
      {
        title: 'LangGraph + Postgres',
        packages: [
          '@langchain/langgraph',
          '@langchain/core',
          '@langchain/langgraph-checkpoint-postgres',
        ],
        imports: ['@langchain/langgraph', '@langchain/langgraph-checkpoint-postgres'],
      },
    ],
  },
  mastra: {
    title: 'Mastra',
    load: () => import('./mastra.ts'),
    packages: ['@mastra/core', '@mastra/memory', '@mastra/libsql'],
    footprints: [
      {
        title: 'Mastra + libSQL',
        packages: ['@mastra/core', '@mastra/memory', '@mastra/libsql'],
        imports: ['@mastra/core/agent', '@mastra/memory', '@mastra/libsql'],
      },
    ],
  },
  openai: {
    title: 'OpenAI Agents',
    load: () => import('./openai.ts'),
    packages: ['@openai/agents'],
    footprints: [
      { title: 'OpenAI Agents', packages: ['@openai/agents'], imports: ['@openai/agents'] },
    ],
  },
  ai: {
    title: 'AI SDK',
    load: () => import('./ai.ts'),
    packages: ['ai'],
    footprints: [{ title: 'AI SDK', packages: ['ai'], imports: ['ai'] }],
  },
};
