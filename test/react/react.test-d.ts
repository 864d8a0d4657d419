import { expectTypeOf, test } from 'vitest';
import type { Agent } from '../../src/agent/spec/agent.ts';
import type { RemoteAgent } from '../../src/client/index.ts';
import {
  createAgentStore,
  type UseAgent,
  useAgent,
  useAgentStore,
  useAgentValue,
} from '../../src/react/index.ts';

interface ChatTypes {
  readonly custom: { topics: string[] };
  readonly status: 'thinking' | 'writing';
  readonly output: { title: string };
}
declare const chat: Agent<ChatTypes>;
declare const remote: RemoteAgent<ChatTypes>;

test('the types come from the agent, wherever it is', () => {
  expectTypeOf(useAgent({ agent: remote })).toEqualTypeOf<UseAgent<ChatTypes>>();
  expectTypeOf(useAgent({ agent: chat })).toEqualTypeOf<UseAgent<ChatTypes>>();
  expectTypeOf(useAgent<typeof chat>({ url: '', agent: 'chat' })).toEqualTypeOf<
    UseAgent<ChatTypes>
  >();
});

test('custom state, status and output are typed', async () => {
  const { custom, status, output, send } = useAgent({ agent: remote });
  expectTypeOf(custom).toEqualTypeOf<{ topics: string[] } | undefined>();
  expectTypeOf(status).toEqualTypeOf<'thinking' | 'writing' | undefined>();
  expectTypeOf(output).toEqualTypeOf<{ title: string } | undefined>();
  expectTypeOf((await send('hi'))?.output).toEqualTypeOf<{ title: string } | undefined>();
});

test('a part of the view has the type of the part', () => {
  const store = useAgentStore({ agent: remote });
  expectTypeOf(useAgentValue(store, (view) => view.custom?.topics)).toEqualTypeOf<
    string[] | undefined
  >();
  expectTypeOf(createAgentStore({ agent: chat })).toEqualTypeOf(store);
});
