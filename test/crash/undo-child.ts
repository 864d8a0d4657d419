/** A process that undoes the turns of sessions, one after the other, until nothing is left; tests kill it. */
import { waymark } from '../../src/app.ts';
import { hasStatus } from '../../src/core/error.ts';
import { systemClock } from '../../src/core/time.ts';
import { tool } from '../../src/generate/tool/tool.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';

export interface UndoChildOptions {
  readonly kind: 'sqlite' | 'files' | 'postgres';
  readonly at: string;
  /** The address of the services with the ledger. */
  readonly services: string;
  readonly role: 'fill' | 'undo';
  readonly sessions: number;
  /** Turns of a session after the first, and calls of each. */
  readonly turns: number;
  readonly calls: number;
}

const options = JSON.parse(process.argv[2] ?? '{}') as UndoChildOptions;
const { kind, at, services, role, sessions, turns, calls } = options;

function openStore(): Store {
  if (kind === 'sqlite') return sqliteStore(at);
  if (kind === 'files') return fileStore(at, { durability: 'normal' });
  const [connectionString = '', schema = ''] = at.split(' ');
  return postgresStore({ connectionString, schema, max: 4 });
}

async function ask(path: string, body: object): Promise<{ readonly id: string }> {
  const response = await fetch(`${services}/${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`The service answered ${response.status}.`);
  return (await response.json()) as { readonly id: string };
}

const names = ['bank', 'mail', 'ticket'] as const;
const tools = names.map((name) =>
  tool(
    {
      name,
      description: `Asks the ${name}`,
      undo: ({ output, idempotencyKey: key }) => ask('undo', { ...(output as object), key }),
    },
    (_, { idempotencyKey: key }) => ask('do', { what: name, key }),
  ),
);
const model = scriptedModel({
  patterns: [
    [
      /^work/,
      { toolCalls: Array.from({ length: calls }, (_, no) => ({ name: names[no % 3] ?? 'bank' })) },
    ],
  ],
  afterTools: () => 'Done.',
  otherwise: 'Hello.',
});
const store = openStore();
const app = waymark({ model, store, claimTtl: 300, onError: () => {} });
const agent = app.defineAgent({ name: 'clerk', tools });
const ids = Array.from({ length: sessions }, (_, no) => `s${no}`);

async function fill(): Promise<void> {
  for (const sessionId of ids) {
    await agent.run('Hi', { sessionId });
    for (let turn = 0; turn < turns; turn++) await agent.run('work', { sessionId });
  }
}

/** Undoes the last turn of a session; `false` when the session is at its first turn. */
async function undoLast(sessionId: string): Promise<boolean> {
  const { headId = '' } = (await agent.getSession(sessionId)) ?? {};
  const head = await agent.getSnapshot(headId);
  if (head?.parentId === undefined) return false;
  try {
    await agent.restore(head.parentId, { undo: true });
  } catch (error) {
    // Another process works on it, or has finished it.
    if (!hasStatus(error, 'ABORTED', 'NOT_FOUND', 'UNAVAILABLE')) throw error;
    await systemClock.sleep(20);
  }
  return true;
}

async function undo(): Promise<void> {
  const start = process.pid % ids.length;
  const mine = [...ids.slice(start), ...ids.slice(0, start)];
  for (let left = mine; left.length > 0; ) {
    const next: string[] = [];
    for (const sessionId of left) {
      // A run that has lost three processes has failed; the next attempt continues.
      const more = await undoLast(sessionId).catch((error: unknown) => {
        process.stderr.write(`${String(error)}\n`);
        return true;
      });
      if (more) next.push(sessionId);
    }
    left = next;
  }
}

process.stdout.write('ready\n');
await (role === 'fill' ? fill() : undo());
process.stdout.write('done\n');
await app.close({ grace: 0 });
