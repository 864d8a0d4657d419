import { expectTypeOf, test } from 'vitest';
import { type Agent, type AgentApi, waymark } from 'waymark';
import { createClient, type RemoteAgent, type TypesOf } from 'waymark/client';
import { z } from 'zod';

/** Written once, for agents of this process and of a server. */
async function titleOf(agent: AgentApi, sessionId: string): Promise<string | undefined> {
  const { signal } = new AbortController();
  return (await agent.getSession(sessionId, { signal }))?.title;
}

test('a function over AgentApi takes an agent of this process and one on a server', () => {
  const chat = waymark().defineAgent({ name: 'chat', state: z.object({ likes: z.string() }) });
  const remote = createClient({ url: 'http://localhost' }).agent('chat');
  expectTypeOf(chat).toExtend<AgentApi<TypesOf<typeof chat>>>();
  expectTypeOf<Agent>().toExtend<AgentApi>();
  expectTypeOf<RemoteAgent>().toExtend<AgentApi>();
  expectTypeOf(titleOf).toBeCallableWith(remote, 's');
  expectTypeOf(titleOf).toBeCallableWith(chat, 's');
});

test('every call that sends an input takes tools that the caller executes', () => {
  const chat = waymark().defineAgent({ name: 'chat' });
  const remote = createClient({ url: 'http://localhost' }).agent('chat');
  const tools = [
    { name: 'a', description: 'A', inputSchema: z.object({ city: z.string() }) },
    { name: 'b', inputSchema: { type: 'object' } },
  ];
  for (const agent of [chat, remote as AgentApi]) {
    void agent.run('hi', { tools });
    void agent.start('hi', { tools });
    agent.stream('hi', { tools });
    void agent.chat().send('hi', { tools });
    void agent.streamBidi().sendText('hi', { tools });
    // @ts-expect-error a tool needs a schema
    void agent.run('hi', { tools: [{ name: 'a' }] });
    // @ts-expect-error it is executed by the caller, after the turn
    void agent.run('hi', { tools: [{ name: 'a', inputSchema: {}, run: () => 1 }] });
  }
});
