import { join } from 'node:path';
import { type Agent, type AppOptions, type Chat, memoryStore, waymark } from 'waymark';
import { allocated, databaseFileBytes } from '../lib/disk.ts';
import { databaseBytes } from '../lib/postgres.ts';
import { toolText } from '../lib/text.ts';
import { answer, noted, type Place, type Running, type System } from './system.ts';

/** Waymark as its users have it: the built package. */
export const system: System = { load: loadStore, open };

async function open(variant: string, place: Place): Promise<Running<Chat>> {
  const store = await openStore(variant, place);
  const app = waymark(store === undefined ? {} : { store });
  const agent = defineAgent(app, place.tools);
  return {
    start: () => agent.chat(),
    async turn(chat, text) {
      const { stream, output } = chat.stream(text);
      let length = 0;
      for await (const { modelChunk } of stream) {
        for (const part of modelChunk?.content ?? []) {
          if ('text' in part) length += noted(part.text.length);
        }
      }
      const { error } = await output;
      if (error !== undefined) throw new Error(error.message);
      return length;
    },
    ref: ({ sessionId }) => ({ sessionId }),
    resume: ({ sessionId }) => agent.chat({ sessionId: String(sessionId) }),
    mark: ({ snapshotId }) => ({ snapshotId }),
    async branch({ snapshotId }) {
      const { sessionId } = await agent.fork(String(snapshotId));
      return agent.chat({ sessionId });
    },
    bytes: () => bytesOf(variant, place),
    async forget({ sessionId }) {
      if (store !== undefined && sessionId !== undefined) await agent.deleteSession(sessionId);
    },
    close: () => app.close(),
  };
}

async function loadStore(variant: string): Promise<void> {
  await stores[variant]?.();
}

const stores: Readonly<Record<string, () => Promise<unknown>>> = {
  sqlite: () => import('waymark/sqlite'),
  'sqlite-full': () => import('waymark/sqlite'),
  file: () => import('waymark/file'),
  'file-fast': () => import('waymark/file'),
  postgres: () => Promise.all([import('waymark/postgres'), import('pg')]),
};

/** The store of a variant; each is loaded only where it is used. */
export async function openStore(
  variant: string,
  { directory, postgres }: Pick<Place, 'directory' | 'postgres'>,
): Promise<AppOptions['store']> {
  switch (variant) {
    case 'memory':
      return memoryStore();
    case 'sqlite':
    case 'sqlite-full': {
      const { sqliteStore } = await import('waymark/sqlite');
      return sqliteStore(join(directory, 'waymark.db'), {
        durability: variant === 'sqlite' ? 'normal' : 'full',
      });
    }
    case 'file':
    case 'file-fast': {
      const { fileStore } = await import('waymark/file');
      return fileStore(directory, { durability: variant === 'file' ? 'full' : 'normal' });
    }
    case 'postgres': {
      const { postgresStore } = await import('waymark/postgres');
      return postgresStore({ connectionString: postgres });
    }
    default:
      return undefined;
  }
}

function defineAgent(app: ReturnType<typeof waymark>, withTools: boolean): Agent {
  app.defineModel({ name: 'instant' }, async ({ messages }, { stream }) => {
    const { text, chunks } = answer(messages.length);
    if (withTools && messages.at(-1)?.role !== 'tool') {
      const toolRequest = { name: 'look', ref: '1', input: { query: text.slice(0, 40) } };
      return { message: { role: 'model', content: [{ toolRequest }] }, finishReason: 'stop' };
    }
    for (const piece of chunks) await stream({ content: [{ text: piece }] });
    return { message: { role: 'model', content: [{ text }] }, finishReason: 'stop' };
  });
  if (withTools) {
    const query = { type: 'object', properties: { query: { type: 'string' } } };
    app.defineTool({ name: 'look', description: 'Looks it up', input: query }, () => toolText());
  }
  return app.defineAgent({
    name: 'bench',
    model: 'instant',
    ...(withTools && { tools: ['look'] }),
  }) as Agent;
}

async function bytesOf(variant: string, { directory, postgres }: Place): Promise<number> {
  if (variant === 'postgres') return await databaseBytes(postgres);
  if (variant.startsWith('sqlite')) return databaseFileBytes(join(directory, 'waymark.db'));
  return allocated(directory);
}
