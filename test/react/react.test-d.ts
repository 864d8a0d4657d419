import { expectTypeOf, test } from 'vitest';
import type { Agent } from '../../src/agent/contract/agent.ts';
import type { Message, RemoteAgent, SnapshotRef } from '../../src/client/index.ts';
import {
  createAgentStore,
  type MessageView,
  type ToolCallView,
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

test('messages and tool calls have what a page renders, and interrupts what answers them', () => {
  const { messages, transcript, interrupts, resume, restore, fork, view } = useAgent({
    agent: remote,
    sessionId: undefined,
  });
  expectTypeOf(messages).toEqualTypeOf<readonly MessageView[]>();
  expectTypeOf(transcript).toEqualTypeOf<readonly Message[]>();
  expectTypeOf<ToolCallView['status']>().toEqualTypeOf<
    'running' | 'waiting' | 'done' | 'failed' | 'declined' | 'stopped'
  >();
  expectTypeOf<MessageView['role']>().toEqualTypeOf<'system' | 'user' | 'model'>();
  for (const { toolCalls, text } of messages) {
    expectTypeOf(text).toEqualTypeOf<string>();
    for (const { interrupt } of toolCalls) if (interrupt) void resume(interrupt.decline('no'));
  }
  void resume(interrupts.map((request) => request.approve({ input: { amount: 1 } })));
  expectTypeOf(restore).parameter(0).toEqualTypeOf<SnapshotRef>();
  expectTypeOf(fork).returns.resolves.toEqualTypeOf<string | undefined>();
  expectTypeOf(view).parameter(0).toEqualTypeOf<SnapshotRef | undefined>();
  // @ts-expect-error an answer is made by the interrupt
  void resume('yes');
});

test('a part of the view has the type of the part', () => {
  const store = useAgentStore({ agent: remote });
  expectTypeOf(useAgentValue(store, (view) => view.custom?.topics)).toEqualTypeOf<
    string[] | undefined
  >();
  expectTypeOf(createAgentStore({ agent: chat })).toEqualTypeOf(store);
});
