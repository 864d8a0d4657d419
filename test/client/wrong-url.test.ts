/** A client whose URL is not that of a Waymark server. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createClient, type RemoteAgent } from '../../src/client/index.ts';

describe.each([
  [200, 'text/html', '<!doctype html><title>Sign in</title>'],
  [404, 'text/html', '<!doctype html><title>Not found</title>'],
  [200, 'application/json', '{"hello":"world"'],
  [200, 'text/plain', 'ok'],
])('an address that answers with HTTP %s and %s', (status, type, body) => {
  let server: Server;
  let url: string;
  beforeAll(async () => {
    server = createServer((_, response) =>
      response.writeHead(status, { 'content-type': `${type}; charset=utf-8` }).end(body),
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  const calls: [string, (agent: RemoteAgent) => Promise<unknown>][] = [
    ['run', (agent) => agent.run('hi')],
    [
      'stream',
      async (agent) => {
        for await (const _ of agent.stream('hi').stream) throw new Error('A chunk came.');
      },
    ],
    ['the output of a stream', (agent) => agent.stream('hi').output],
    ['start', (agent) => agent.start('hi')],
    ['getSession', (agent) => agent.getSession('s')],
    ['getSnapshot', (agent) => agent.getSnapshot('s')],
    ['listSessions', (agent) => agent.listSessions()],
    [
      'watch',
      async (agent) => {
        for await (const _ of agent.watch('s')) throw new Error('An event came.');
      },
    ],
    ['a connection', (agent) => agent.streamBidi().sendText('hi')],
    ['the output of a connection', (agent) => agent.streamBidi().output()],
  ];
  test.each(calls)('S714 it is named with its URL, status and type: %s', async (_, call) => {
    const client = createClient({ url: `${url}/api?token=secret`, reconnect: false });
    const error = await call(client.agent('chat')).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(Error);
    const { message } = error as Error;
    expect(message).toContain(`${url}/api`);
    expect(message).toContain(`answered with HTTP ${status} and ${type}`);
    expect(message).toContain('Check the `url` of createClient()');
    expect(message).not.toContain('secret');
  });
});
