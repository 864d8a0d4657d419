import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Message, tool, waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';

/** The statements and the stored messages of a turn that calls one tool. */
async function costOf(options: object) {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-undo-cost-'));
  let names: string[] = [];
  const store = sqliteStore(join(folder, 'store.db'), {
    onQuery: (name: string) => names.push(name),
  });
  const calls = { toolCalls: [{ name: 'act', input: { what: 'a thing' }, ref: 'r' }] };
  const model = scriptedModel(['Hello.', calls, 'Done.']);
  const app = waymark({ model, store, work: false });
  const act = tool({ name: 'act', description: 'Acts', ...options }, () => 'done');
  const agent = app.defineAgent({ name: 'agent', tools: [act] });
  const { sessionId } = await agent.run('Hi');
  names = [];
  await agent.run('Go', { sessionId });
  const statements = names;
  const session = await agent.getSession(sessionId);
  const messages = (session?.state?.messages ?? []) as readonly Message[];
  await app.close();
  await rm(folder, { recursive: true, force: true });
  return { statements, response: JSON.stringify(messages.find(({ role }) => role === 'tool')) };
}

test('S760 a call costs two writes more if it has an undo, and no statement if it has none', async () => {
  const silent = await costOf({ effect: 'none' });
  const plain = await costOf({});
  const undoable = await costOf({ undo: () => {} });
  // A tool without an effect stores what it always has: the same statements, and no byte more.
  expect(silent.response).not.toContain('recorded');
  expect(plain.statements).toEqual(silent.statements);
  expect(undoable.statements.filter((name) => name === 'effect_save')).toHaveLength(2);
  expect(
    undoable.statements.filter((name) => !/^(effect_save|open_run|begin|commit)/i.test(name)),
  ).toEqual(silent.statements.filter((name) => !/^(open_run|begin|commit)/i.test(name)));
  // The key and the time of its call, in the message of its response.
  expect(plain.response.length - silent.response.length).toBe(140);
  expect(undoable.response.length).toBe(plain.response.length);
});
