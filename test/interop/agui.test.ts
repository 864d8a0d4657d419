import * as current from '@ag-ui/client';
import * as former from 'ag-ui-client-0';
import { from, lastValueFrom, toArray } from 'rxjs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createAguiApp, showMap } from '../server/agui-app.ts';
import { startServer } from '../server/kit.ts';
import { eventually } from '../support/eventually.ts';

let server: Awaited<ReturnType<typeof startServer>>;
beforeAll(async () => {
  server = await startServer({ app: createAguiApp(), agui: { agents: ['chat'] } });
});
afterAll(() => server.close());

// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
type Any = any;

/** The two generations of the client; the second one has the same interface. */
const generations = { '1.0': current, '0.0.59': former as unknown as typeof current };

interface Session {
  readonly agent: current.HttpAgent;
  /** All events that came, in order. */
  readonly events: Any[];
  say(text: string, parameters?: Any): Promise<current.RunAgentResult>;
  roles(): string[];
  text(): string;
}

let count = 0;

function open(client: typeof current, threadId = `thread-${++count}`): Session {
  class Agent extends client.HttpAgent {
    // How a page that is loaded again follows the thread: the protocol leaves it to the server.
    protected override connect(input: current.RunAgentInput): ReturnType<current.HttpAgent['run']> {
      const version = client === current ? '?protocolVersion=1.0' : '';
      return client.transformHttpEventStream(
        client.runHttpRequest(() => fetch(`${this.url}/${input.threadId}${version}`)),
      );
    }
  }
  const agent = new Agent({ url: `${server.url}/agui/chat`, threadId });
  const events: Any[] = [];
  agent.subscribe({ onEvent: ({ event }) => void events.push(event) });
  return {
    agent,
    events,
    say(text, parameters) {
      agent.addMessage({ id: `user-${++count}`, role: 'user', content: text });
      return agent.runAgent(parameters);
    },
    roles: () => agent.messages.map(({ role }) => role),
    text: () => String(agent.messages.at(-1)?.content),
  };
}

const finished = ({ events }: Session): Any =>
  events.findLast(({ type }) => type === 'RUN_FINISHED');

describe.each(Object.entries(generations))('@ag-ui/client %s', (version, client) => {
  test('text streams, and a second message continues the thread', async () => {
    const session = open(client);
    await session.say('hello');
    expect(session.text()).toBe('You said 1 things.');
    await session.say('more');
    expect(session.text()).toBe('You said 2 things.');
    expect(session.roles()).toEqual(['user', 'assistant', 'user', 'assistant']);
    // The client shows what the server has: nothing had to be corrected.
    expect(session.events.some(({ type }) => type === 'MESSAGES_SNAPSHOT')).toBe(false);
  });

  test('reasoning, tools of the agent and their results', async () => {
    const session = open(client);
    await session.say('think');
    expect(session.agent.messages[1]).toMatchObject({ role: 'reasoning', content: 'Hm.' });
    expect(session.text()).toBe('Thought well.');
    await session.say('weather in Oslo');
    const [call, result] = session.agent.messages.slice(-3) as Any[];
    expect(call).toMatchObject({ role: 'assistant', content: 'Let me look.' });
    expect(call.toolCalls[0].function).toEqual({ name: 'weather', arguments: '{"city":"Oslo"}' });
    expect(result).toMatchObject({
      role: 'tool',
      content: 'Sunny in Oslo',
      toolCallId: call.toolCalls[0].id,
    });
  });

  test('state deltas reproduce the state, and artifacts are activities', async () => {
    const session = open(client);
    await session.say('note milk');
    await session.say('note bread');
    expect(session.agent.state).toEqual({ notes: ['milk', 'bread'], last: 'bread' });
    expect(session.events.some(({ type }) => type === 'STATE_DELTA')).toBe(true);
    const stored = await server.app
      .agents()
      .find(({ name }) => name === 'chat')
      ?.getSession(session.agent.threadId);
    expect(session.agent.state).toEqual(stored?.state?.custom);
    const activity = session.agent.messages.filter(({ role }) => role === 'activity');
    expect(activity).toMatchObject([
      { activityType: 'artifact', content: { parts: [{ text: '# bread' }] } },
    ]);
  });

  test('tools of the page: the call ends the run, and its result continues it', async () => {
    const session = open(client);
    const tools = [showMap];
    await session.say('map of Rome', { tools });
    const call = (session.agent.messages.at(-1) as Any).toolCalls[0];
    expect(call.function).toEqual({ name: 'show_map', arguments: '{"city":"Rome"}' });
    expect(finished(session).outcome).toEqual(
      version === '1.0' ? { type: 'success', pendingToolCallIds: [call.id] } : undefined,
    );
    session.agent.addMessage({ id: 'result', role: 'tool', toolCallId: call.id, content: 'shown' });
    await session.agent.runAgent({ tools });
    expect(session.text()).toContain('shown');
    expect(session.roles()).toEqual(['user', 'assistant', 'tool', 'assistant']);
    // A result without a run of its own, and a message behind it.
    await session.say('map of Bonn', { tools });
    const second = (session.agent.messages.at(-1) as Any).toolCalls[0];
    session.agent.addMessage({ id: 'later', role: 'tool', toolCallId: second.id, content: 'ok' });
    await session.say('thanks', { tools });
    expect(session.text()).toBe('You said 3 things.');
  });

  test('an interrupt is answered by resume, once', async () => {
    const session = open(client);
    await session.say('delete notes');
    const [interrupt] = session.agent.pendingInterrupts;
    expect(interrupt).toMatchObject({ reason: 'tool_approval', metadata: { tool: 'delete' } });
    const resume = [
      { interruptId: interrupt?.id ?? '', status: 'resolved', payload: { approved: true } },
    ];
    await session.agent.runAgent({ resume } as Any);
    expect(session.text()).toContain('deleted notes');
    await expect(session.agent.runAgent({ resume } as Any)).rejects.toThrow();

    await session.say('delete more');
    const [second] = session.agent.pendingInterrupts;
    await session.agent.runAgent({
      resume: [
        {
          interruptId: second?.id ?? '',
          status: 'resolved',
          payload: { approved: true, editedArgs: { file: 'less' } },
        },
      ],
    } as Any);
    expect(session.text()).toContain('deleted less');

    await session.say('ask me');
    const [third] = session.agent.pendingInterrupts;
    expect(third).toMatchObject({ reason: 'input_required', responseSchema: { type: 'string' } });
    await session.agent.runAgent({
      resume: [{ interruptId: third?.id ?? '', status: 'resolved', payload: 'blue' }],
    } as Any);
    expect(session.text()).toContain('blue');

    await session.say('delete last');
    const [fourth] = session.agent.pendingInterrupts;
    await session.agent.runAgent({
      resume: [{ interruptId: fourth?.id ?? '', status: 'cancelled' }],
    } as Any);
    expect(session.text()).toContain('declined');
  });

  test('abort keeps the partial answer in the next history', async () => {
    const session = open(client);
    const running = session.say('hang').catch(() => {});
    await eventually(async () => expect(session.text()).toBe('It hangs'));
    session.agent.abortRun();
    await running;
    await session.say('and now?');
    expect(session.text()).toBe('You said 2 things.');
    const chat = server.app.agents().find(({ name }) => name === 'chat');
    const stored = await chat?.getSession(session.agent.threadId);
    expect(JSON.stringify(stored?.state?.messages)).toContain('It hangs');
    expect(session.roles()).toEqual(['user', 'assistant', 'user', 'assistant']);
  });

  test('another client connects during the run, and follows it to its end', async () => {
    const first = open(client);
    await first.say('note milk');
    const running = first.say('hang').catch(() => {});
    await eventually(async () => expect(first.text()).toBe('It hangs'));
    const second = open(client, first.agent.threadId);
    const connected = second.agent.connectAgent().catch(() => {});
    await eventually(async () => expect(second.text()).toBe('It hangs'));
    expect(second.agent.state).toEqual({ notes: ['milk'], last: 'milk' });
    expect(second.roles().filter((role) => role !== 'activity')).toEqual(
      first.roles().filter((role) => role !== 'activity'),
    );
    const cancel = await fetch(`${server.url}/agui/chat/${first.agent.threadId}/cancel`, {
      method: 'POST',
    });
    expect(cancel.status).toBe(204);
    await Promise.all([running, connected]);
    expect(finished(second).outcome).toEqual(version === '1.0' ? { type: 'cancelled' } : undefined);
    // A page that is loaded later finds the thread at rest.
    const third = open(client, first.agent.threadId);
    await third.agent.connectAgent();
    expect(
      third.agent.messages.filter(({ role }) => role !== 'activity').map(({ id }) => id),
    ).toEqual(first.agent.messages.filter(({ role }) => role !== 'activity').map(({ id }) => id));
    await third.say('go on');
    expect(third.text()).toBe('You said 3 things.');
  });

  test('sub-agents speak under their own run', async () => {
    const session = open(client);
    await session.say('research Bergen');
    const started = session.events.find(({ type }) => type === 'SUBAGENT_STARTED');
    expect(started).toMatchObject({ name: 'researcher' });
    const inside = session.events.filter(
      ({ subagentRunId }) => subagentRunId === started.subagentRunId,
    );
    expect(inside.map(({ type }) => type)).toContain('TOOL_CALL_RESULT');
    expect(session.events.some(({ type }) => type === 'SUBAGENT_FINISHED')).toBe(true);
    await session.say('next');
    expect(session.text()).toBe('You said 2 things.');
  });

  test('a failed run is an error without secrets', async () => {
    const session = open(client);
    await session.say('fail').catch(() => {});
    expect(session.events.at(-1)).toMatchObject({ type: 'RUN_ERROR', code: 'INTERNAL' });
    expect(JSON.stringify(session.events)).not.toContain('secret');
    await session.say('hello again');
    expect(session.text()).toMatch(/^You said/);
  });

  test('an edited message branches, and the message before it can be answered again', async () => {
    const session = open(client);
    await session.say('one');
    await session.say('two');
    await session.say('three');
    const { messages } = session.agent;
    session.agent.setMessages([
      ...messages.slice(0, 2),
      { id: 'edited', role: 'user', content: 'other' },
    ]);
    await session.agent.runAgent();
    expect(session.text()).toBe('You said 2 things.');
    session.agent.setMessages(session.agent.messages.slice(0, -1));
    await session.agent.runAgent();
    expect(session.text()).toBe('You said 2 things.');
    const chat = server.app.agents().find(({ name }) => name === 'chat');
    const { items } = (await chat?.listSnapshots(session.agent.threadId, {
      includeOrphaned: true,
    })) ?? { items: [] };
    expect(items).toHaveLength(5);
  });

  test('the verifier of the protocol accepts every stream', async () => {
    const inputs = [
      'hello',
      'think',
      'weather in Oslo',
      'note milk',
      'map of Rome',
      'delete a',
      'ask me',
      'research X',
      'fail',
      'delete it and map',
    ];
    for (const content of inputs) {
      const response = await fetch(`${server.url}/agui/chat`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'text/event-stream' },
        body: JSON.stringify({
          threadId: `verified-${++count}`,
          runId: `run-${count}`,
          ...(version === '1.0' && { protocolVersion: '1.0' }),
          messages: [{ id: 'u', role: 'user', content }],
          tools: [showMap],
          context: [],
          state: {},
          forwardedProps: {},
        }),
      });
      const lines = (await response.text()).split('\n').filter((line) => line.startsWith('data: '));
      const events = lines.map((line) => JSON.parse(line.slice(6)));
      const verified = await lastValueFrom(from(events).pipe(client.verifyEvents(), toArray()));
      expect(verified).toHaveLength(events.length);
      expect(['RUN_FINISHED', 'RUN_ERROR']).toContain(events.at(-1).type);
    }
  });
});
