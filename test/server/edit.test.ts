import { afterEach, expect, test } from 'vitest';
import { createClient } from '../../src/client/index.ts';
import { createTestApp, startServer } from './kit.ts';

let close = async (): Promise<void> => {};
afterEach(() => close());

async function serveWith(options: Parameters<typeof startServer>[0]) {
  const server = await startServer({ app: createTestApp(), ...options });
  close = () => server.close();
  const headers = { authorization: 'ann' };
  const agent = createClient({ url: server.url, headers }).agent('chat');
  const { sessionId, snapshotId = '' } = await agent.run('hello');
  return { agent, sessionId, snapshotId };
}

const auth = (request: Request) => ({ principal: request.headers.get('authorization') ?? 'x' });
const change = { artifacts: [{ name: 'a.txt', parts: [{ text: 'A' }] }] };

test('S490 with auth, clients cannot edit unless the server says so', async () => {
  const { agent, snapshotId, sessionId } = await serveWith({ auth });
  await expect(agent.edit(snapshotId, change)).rejects.toMatchObject({
    status: 'PERMISSION_DENIED',
    message: expect.stringContaining('edit: true'),
  });
  expect((await agent.listSnapshots(sessionId)).items).toHaveLength(1);
});

test('S487 S490 a server records the caller that it authenticated, not who the client says it is', async () => {
  const operations: string[] = [];
  const { agent, snapshotId } = await serveWith({
    auth,
    edit: true,
    authorize: ({ operation, sessionId }) => {
      operations.push(`${operation} ${sessionId !== undefined}`);
      return true;
    },
  });
  const edited = await agent.edit(snapshotId, change, { by: 'bob', reason: 'a test' });
  expect(edited.edit).toEqual({ by: 'ann', reason: 'a test' });
  expect(operations).toContain('edit true');
});

test('S485 S487 without auth, an edit has no name', async () => {
  const { agent, snapshotId, sessionId } = await serveWith({});
  const { edit, event, state } = await agent.edit(snapshotId, change);
  expect({ edit, event, artifacts: state?.artifacts }).toEqual({
    edit: {},
    event: 'edit',
    artifacts: change.artifacts,
  });
  expect(await agent.getSession(sessionId)).toMatchObject({ turnCount: 1 });
});

test.each(['copy', 'move', 'test'] as const)(
  'S490 a patch of a client cannot read the state: %s',
  async (op) => {
    const { agent, snapshotId, sessionId } = await serveWith({});
    const customPatch = [{ op, from: '/secret', path: '/note', value: 1 }];
    await expect(agent.edit(snapshotId, { customPatch })).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
      message: expect.stringContaining(`"${op}"`),
    });
    expect((await agent.listSnapshots(sessionId)).items).toHaveLength(1);
  },
);
