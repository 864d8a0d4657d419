import {
  AbstractChat,
  type ChatState,
  type ChatStatus,
  DefaultChatTransport,
  type UIMessage,
} from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memoryStore, toolApproval, waymark } from 'waymark';
import { serve } from 'waymark/server';
import { scriptedModel } from 'waymark/testing';
import { eventually } from '../support/eventually.ts';
import { get, post, startServer } from './kit.ts';

let server: Awaited<ReturnType<typeof startServer>>;
let api: string;

beforeAll(async () => {
  server = await startServer({ keepAlive: 20 });
  api = `${server.url}/ui/chat`;
});
afterAll(() => server.close());

describe('the chat of npm `ai`', () => {
  test('sends, streams and goes on', async () => {
    const chat = createChat('ui-1');
    await chat.sendMessage({ text: 'count 4 30' });
    expect(chat.error).toBeUndefined();
    expect(texts(chat)).toEqual(['count 4 30', '0 1 2 3 ']);
    await chat.sendMessage({ text: 'hello' });
    expect(texts(chat).at(-1)).toBe('You said 2 things.');
    const { turnCount } = await get(`${server.url}/agents/chat/sessions/ui-1`);
    expect(turnCount).toBe(2);
  });

  test('shows reasoning, a tool call with its result, and what the model said then', async () => {
    const chat = createChat('ui-2');
    await chat.sendMessage({ text: 'think' });
    expect(chat.messages.at(-1)?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'reasoning', text: 'Hm.', state: 'done' },
      { type: 'text', text: 'Thought.', state: 'done' },
    ]);
    await chat.sendMessage({ text: 'weather in Rome' });
    expect(chat.messages.at(-1)?.parts).toMatchObject([
      { type: 'step-start' },
      { type: 'text', text: 'Let me look.' },
      {
        type: 'tool-weather',
        state: 'output-available',
        input: { city: 'Rome' },
        output: 'Sunny in Rome',
      },
      { type: 'step-start' },
      { type: 'text', text: 'Sunny in Rome' },
    ]);
  });

  test('an approval runs the interrupted tool, a denial does not', async () => {
    for (const approved of [true, false]) {
      const chat = createChat(`ui-approve-${approved}`);
      await chat.sendMessage({ text: 'transfer 9' });
      const part = chat.messages.at(-1)?.parts.at(-1);
      expect(part).toMatchObject({
        type: 'tool-transfer',
        state: 'approval-requested',
        approval: { descriptor: { sum: 9 } },
      });
      const { id } = (part as { approval: { id: string } }).approval;
      await chat.addToolApprovalResponse({ id, approved, reason: 'said so' });
      await chat.sendMessage();
      expect(chat.error).toBeUndefined();
      const said = texts(chat).at(-1);
      if (approved) expect(said).toContain('"moved":9');
      else expect(said).toContain('The user declined. The reason: said so');
    }
  });

  test('S582 a denial is `output-denied`, also for a tool with an output schema and after a reload', async () => {
    const number = { type: 'object', properties: { euros: { type: 'number' } } } as const;
    const model = scriptedModel([
      { toolCalls: [{ name: 'refund', ref: 'r1', input: { euros: 9 } }] },
      'Then not.',
      { toolCalls: [{ name: 'refund', ref: 'r2', input: { euros: 8 } }] },
      'What else?',
    ]);
    const app = waymark({ model, store: memoryStore() });
    const refund = app.defineTool(
      {
        name: 'refund',
        description: 'Refunds.',
        input: number,
        output: { ...number, required: ['euros'] },
      },
      (input) => input,
    );
    const desk = app.defineAgent({
      name: 'desk',
      tools: [refund],
      use: [toolApproval(['refund'])],
    });
    const served = await serve(app, { port: 0 });
    try {
      const chat = createChat('denied', [], `${served.url}/ui/desk`);
      await chat.sendMessage({ text: 'refund 9' });
      await chat.addToolApprovalResponse({ id: 'r1', approved: false, reason: 'no' });
      await chat.sendMessage();
      expect(chat.error).toBeUndefined();
      const denied = {
        state: 'output-denied',
        input: { euros: 9 },
        approval: { id: 'r1', approved: false },
      };
      expect(toolsOf(chat.messages)).toMatchObject([denied]);
      expect(texts(chat).at(-1)).toBe('Then not.');
      expect((await desk.listInterrupts()).items).toEqual([]);

      // Another message declines, too.
      await chat.sendMessage({ text: 'refund 8' });
      await chat.sendMessage({ text: 'never mind' });
      const loaded: UIMessage[] = await get(`${served.url}/ui/desk/denied/messages`);
      expect(toolsOf(loaded)).toMatchObject([denied, { state: 'output-denied' }]);
    } finally {
      await served.close();
      await app.close();
    }
  });

  test('the answer to an approval continues its message, also on a page that is loaded again', async () => {
    const chat = createChat('ui-continued');
    await chat.sendMessage({ text: 'hello' });
    await chat.sendMessage({ text: 'transfer 9' });
    const asked = chat.messages.at(-1)?.id;
    const [request] = toolsOf(chat.messages) as readonly { approval: { id: string } }[];
    await chat.addToolApprovalResponse({ id: request?.approval.id ?? '', approved: true });
    await chat.sendMessage();

    const done = { state: 'output-available', input: { sum: 9 }, output: { moved: 9 } };
    expect(chat.messages).toHaveLength(4);
    expect(chat.messages.at(-1)?.id).toBe(asked);
    expect(toolsOf(chat.messages)).toMatchObject([done]);

    const loaded: UIMessage[] = await get(`${api}/ui-continued/messages`);
    expect(loaded).toHaveLength(4);
    expect(loaded.at(-1)?.id).toBe(asked);
    expect(toolsOf(loaded)).toMatchObject([done]);
    expect(toolsOf(loaded)[0]).not.toHaveProperty('approval');

    // The whole answer is given again, not only what followed the approval.
    await chat.regenerate();
    expect(chat.error).toBeUndefined();
    expect(toolsOf(chat.messages)).toMatchObject([{ state: 'approval-requested' }]);

    // A message after the answer is replaced on the branch where the tool has run.
    const again = createChat('ui-continued', loaded);
    await again.sendMessage({ text: 'one' });
    await again.sendMessage({ text: 'other', messageId: again.messages.at(-2)?.id ?? '' });
    expect(again.error).toBeUndefined();
    const { state } = await get(`${server.url}/agents/chat/sessions/ui-continued`);
    expect(JSON.stringify(state.messages)).toMatch(/"moved":9.*"other"/);
    expect(JSON.stringify(state.messages)).not.toContain('"one"');
  });

  test('the page gives the output of a tool that only asks', async () => {
    const chat = createChat('ui-ask');
    await chat.sendMessage({ text: 'ask' });
    const part = chat.messages.at(-1)?.parts.at(-1);
    const toolCallId = part && 'toolCallId' in part ? part.toolCallId : '';
    await chat.addToolOutput({ tool: 'question', toolCallId, output: 'green' });
    await chat.sendMessage();
    expect(texts(chat).at(-1)).toContain('green');
  });

  test('after a stop the next message goes through, and the partial answer stays', async () => {
    const chat = createChat('ui-stop');
    const sending = chat.sendMessage({ text: 'hang' });
    await eventually(() => expect(texts(chat).at(-1)).toBe('It hangs'));
    await chat.stop();
    await sending;
    await chat.sendMessage({ text: 'hello' });
    expect(chat.error).toBeUndefined();
    expect(texts(chat).at(-1)).toBe('You said 2 things.');
    const { state } = await get(`${server.url}/agents/chat/sessions/ui-stop`);
    expect(state.messages[1].content[0].text).toBe('It hangs');
  });

  test('while another page looks on, its turn is not stopped', async () => {
    const first = createChat('ui-two');
    const sending = first.sendMessage({ text: 'hang' });
    await eventually(() => expect(texts(first).at(-1)).toBe('It hangs'));
    const second = createChat('ui-two');
    await second.sendMessage({ text: 'hello' });
    expect(second.error?.message).toContain('ABORTED');
    expect((await post(`${api}/ui-two/stop`, {})).status).toBe(204);
    await sending;
    expect(texts(first).at(-1)).toBe('It hangs');
  });

  test('a page that is loaded again gets the whole message from its start', async () => {
    const first = createChat('ui-reload');
    const sending = first.sendMessage({ text: 'count 20 20' });
    await eventually(() => expect(texts(first).at(-1)).toMatch(/^0 1 2 /));
    await first.stop();
    await sending;
    const messages = await get(`${api}/ui-reload/messages`);
    const second = createChat('ui-reload', messages);
    await second.resumeStream();
    expect(texts(second).at(-1)).toMatch(/^0 1 2 .*19 $/);
    expect((await fetch(`${api}/ui-reload/stream`)).status).toBe(204);
    const later = await get(`${api}/ui-reload/messages`);
    expect(later.map(({ role }: UIMessage) => role)).toEqual(['user', 'assistant']);
    expect(later[1].id).toBe(second.messages.at(-1)?.id);
  });

  test('an answer is given again, and a message is replaced, from where they stood', async () => {
    const chat = createChat('ui-again');
    await chat.sendMessage({ text: 'one' });
    await chat.sendMessage({ text: 'two' });
    await chat.regenerate();
    expect(chat.error).toBeUndefined();
    expect(texts(chat)).toEqual(['one', 'You said 1 things.', 'two', 'You said 2 things.']);
    await chat.sendMessage({ text: 'other', messageId: chat.messages[2]?.id ?? '' });
    expect(texts(chat)).toEqual(['one', 'You said 1 things.', 'other', 'You said 2 things.']);
    const { items } = await get(
      `${server.url}/agents/chat/sessions/ui-again/snapshots?includeOrphaned`,
    );
    expect(items).toHaveLength(4);
  });

  test('S720 the first answer is given again, and the first message is replaced, in the same session', async () => {
    const chat = createChat('ui-first');
    await chat.sendMessage({ text: 'one' });
    await chat.regenerate();
    expect(chat.error).toBeUndefined();
    expect(texts(chat)).toEqual(['one', 'You said 1 things.']);
    await chat.sendMessage({ text: 'two' });
    await chat.sendMessage({ text: 'count 2 0', messageId: chat.messages[0]?.id ?? '' });
    expect(chat.error).toBeUndefined();
    expect(texts(chat)).toEqual(['count 2 0', '0 1 ']);
    await chat.sendMessage({ text: 'three' });
    expect(texts(chat).at(-1)).toBe('You said 2 things.');
    const { items } = await get(
      `${server.url}/agents/chat/sessions/ui-first/snapshots?includeOrphaned`,
    );
    expect(items.map(({ turnIndex }: { turnIndex: number }) => turnIndex)).toEqual([0, 0, 1, 0, 1]);
  });

  test('what fails is an error of the chat, without the exception’s text', async () => {
    const chat = createChat('ui-fail');
    await chat.sendMessage({ text: 'fail' });
    expect(chat.status).toBe('error');
    expect(chat.error?.message).not.toContain('secret');
  });
});

describe('the wire', () => {
  test('has the header, only data lines and comments, and ends with [DONE]', async () => {
    const response = await post(api, {
      id: 'ui-wire',
      messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text: 'remember rain' }] }],
    });
    expect(response.headers.get('x-vercel-ai-ui-message-stream')).toBe('v1');
    const text = await response.text();
    expect(text).toMatch(/^data: \{"type":"start","messageId":"[0-9a-f-]{36}"/);
    expect(text).toMatch(/data: \[DONE\]\n\n$/);
    expect(text).toContain('"type":"data-customPatch"');
  });

  test('bad requests say what is wrong', async () => {
    const cases: [unknown, string][] = [
      [{}, 'INVALID_ARGUMENT'],
      [{ id: 'x', messages: [] }, 'INVALID_ARGUMENT'],
      [{ id: 'x', messages: [{ role: 'user', parts: [] }] }, 'INVALID_ARGUMENT'],
      [{ id: 'x', messages: [{ role: 'assistant', parts: [] }] }, 'NOT_FOUND'],
      [
        { id: 'x', trigger: 'regenerate-message', messages: [{ role: 'user', parts: [] }] },
        'NOT_FOUND',
      ],
      [
        {
          id: 'x',
          messageId: 'm',
          messages: [
            { role: 'assistant', parts: [] },
            { role: 'user', parts: [{ type: 'text', text: 'a' }] },
          ],
        },
        'FAILED_PRECONDITION',
      ],
    ];
    for (const [body, status] of cases) {
      const response = await post(api, body);
      expect(await response.json()).toMatchObject({ status });
    }
  });
});

/** What `useChat` drives, without React. */
class Chat extends AbstractChat<UIMessage> {}

class PlainState implements ChatState<UIMessage> {
  messages: UIMessage[];
  status: ChatStatus = 'ready';
  error: Error | undefined;

  constructor(messages: UIMessage[]) {
    this.messages = messages;
  }

  pushMessage = (message: UIMessage): void => {
    this.messages = [...this.messages, message];
  };
  popMessage = (): void => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (index: number, message: UIMessage): void => {
    this.messages = this.messages.with(index, structuredClone(message));
  };
  snapshot = <T>(value: T): T => structuredClone(value);
}

function createChat(id: string, messages: UIMessage[] = [], url = api): Chat {
  return new Chat({
    id,
    transport: new DefaultChatTransport({ api: url }),
    state: new PlainState(messages),
  });
}

function toolsOf(messages: readonly UIMessage[]): readonly UIMessage['parts'][number][] {
  return messages.flatMap(({ parts }) => parts.filter(({ type }) => type.startsWith('tool-')));
}

function texts(chat: { messages: UIMessage[] }): string[] {
  return chat.messages.map(({ parts }) =>
    parts.map((part) => (part.type === 'text' ? part.text : '')).join(''),
  );
}
