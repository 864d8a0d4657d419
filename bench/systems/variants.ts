import type { Variant } from './system.ts';

/** The ways of using each system, without loading any of them. */
export const variants: Readonly<Record<string, Readonly<Record<string, Variant>>>> = {
  waymark: {
    client: {
      title: 'Waymark, no store',
      keeps: 'nothing',
      note: 'the state is held by the chat object',
    },
    memory: { title: 'Waymark, memory', keeps: 'memory', note: 'memoryStore, a snapshot a turn' },
    sqlite: {
      title: 'Waymark, SQLite',
      keeps: 'disk',
      store: 'sqlite',
      note: 'sqliteStore as it comes: WAL, survives kill -9',
    },
    'sqlite-full': {
      title: 'Waymark, SQLite full',
      keeps: 'disk',
      store: 'sqlite-full',
      note: "sqliteStore with durability 'full': survives a power cut",
    },
    file: {
      title: 'Waymark, files synced',
      keeps: 'disk',
      store: 'file-synced',
      note: 'fileStore as it comes: waits for the disk',
    },
    'file-fast': {
      title: 'Waymark, files',
      keeps: 'disk',
      store: 'file',
      note: "fileStore with durability: 'normal'",
    },
    postgres: {
      title: 'Waymark, Postgres',
      keeps: 'disk',
      store: 'postgres',
      note: 'postgresStore as it comes, commits wait for the disk',
    },
  },
  genkit: {
    client: { title: 'Genkit, no store', keeps: 'nothing', note: 'the state is held by the chat' },
    memory: { title: 'Genkit, memory', keeps: 'memory', note: 'InMemorySessionStore' },
    file: {
      title: 'Genkit, files',
      keeps: 'disk',
      store: 'file',
      note: 'FileSessionStore, which does not wait for the disk',
    },
  },
  langgraph: {
    client: {
      title: 'LangGraph, no saver',
      keeps: 'nothing',
      note: 'the caller keeps the messages',
    },
    memory: { title: 'LangGraph, memory', keeps: 'memory', note: 'MemorySaver' },
    sqlite: {
      title: 'LangGraph, SQLite',
      keeps: 'disk',
      store: 'sqlite',
      note: 'SqliteSaver as it comes (WAL, synchronous normal), on better-sqlite3 13',
    },
    postgres: {
      title: 'LangGraph, Postgres',
      keeps: 'disk',
      store: 'postgres',
      note: 'PostgresSaver as it comes',
    },
  },
  mastra: {
    memory: {
      title: 'Mastra, memory',
      keeps: 'memory',
      note: 'InMemoryStore, lastMessages raised so that the model gets the whole conversation',
    },
    libsql: {
      title: 'Mastra, libSQL',
      keeps: 'disk',
      store: 'sqlite',
      note: 'LibSQLStore on a file, lastMessages raised; messages only, no snapshots',
    },
  },
  openai: {
    memory: {
      title: 'OpenAI Agents, memory',
      keeps: 'memory',
      note: 'MemorySession; the other one it brings keeps conversations at OpenAI. Tracing off',
    },
  },
  ai: {
    'stream-text': {
      title: 'AI SDK, streamText',
      keeps: 'nothing',
      note: 'the caller keeps the messages: no sessions, no store',
    },
    agent: {
      title: 'AI SDK, ToolLoopAgent',
      keeps: 'nothing',
      note: 'the caller keeps the messages: no sessions, no store',
    },
  },
};
