import { expectTypeOf, test } from 'vitest';
import type { Agent } from '../../src/agent/contract/agent.ts';
import type { AgentTypes } from '../../src/api/types.ts';
import { client, createClient, type RemoteAgent, type TypesOf } from '../../src/client/index.ts';
import type { Json } from '../../src/core/json/json.ts';

interface ChatTypes {
  readonly custom: { topics: string[] };
  readonly status: 'thinking' | 'writing';
  readonly output: { title: string };
}
declare const chat: Agent<ChatTypes>;

test('the types of an agent come from its type', () => {
  expectTypeOf<TypesOf<typeof chat>>().toEqualTypeOf<ChatTypes>();
  const remote = client<typeof chat>({ url: '', agent: 'chat' });
  expectTypeOf(remote).toEqualTypeOf<RemoteAgent<ChatTypes>>();
  expectTypeOf(createClient({ url: '' }).agent<typeof chat>('chat')).toEqualTypeOf(remote);
});

test('custom state, status and output are typed in every call', async () => {
  const remote = client<typeof chat>({ url: '', agent: 'chat' });
  const output = await remote.runText('hi');
  expectTypeOf(output.output).toEqualTypeOf<{ title: string }>();
  expectTypeOf(output.state?.custom).toEqualTypeOf<{ topics: string[] } | undefined>();
  for await (const chunk of remote.streamText('hi').stream) {
    expectTypeOf(chunk.status).toEqualTypeOf<'thinking' | 'writing' | undefined>();
  }
  for await (const event of remote.watch('id')) {
    if (event.type === 'end') {
      expectTypeOf(event.snapshot.state?.custom).toEqualTypeOf<{ topics: string[] } | undefined>();
    }
  }
  const session = await remote.getSession('id');
  expectTypeOf(session?.state?.custom).toEqualTypeOf<{ topics: string[] } | undefined>();
  expectTypeOf(remote.chat().state?.custom).toEqualTypeOf<{ topics: string[] } | undefined>();
  // @ts-expect-error a state of another type
  void remote.runText('hi', { state: { custom: { topics: 1 } } });
  // @ts-expect-error the server's auth says whose call it is
  void remote.runText('hi', { owner: 'me' });
});

test('without a type everything is JSON', async () => {
  const output = await client({ url: '', agent: 'chat' }).runText('hi');
  expectTypeOf(output.output).toEqualTypeOf<Json | undefined>();
  expectTypeOf(output.state?.custom).toEqualTypeOf<Json | undefined>();
});

test('a remote agent has the surface of an agent', () => {
  // A folder is on the machine of the process.
  type Own = 'metadata' | 'description' | 'checkout';
  type Surface<Types extends AgentTypes> = Omit<Agent<Types>, Own>;
  expectTypeOf<RemoteAgent<ChatTypes>>().toExtend<Surface<ChatTypes>>();
  expectTypeOf<keyof Surface<ChatTypes>>().toExtend<keyof RemoteAgent<ChatTypes>>();
});
