import { Chat as SvelteChat } from '@ai-sdk/svelte';
import { useChat } from '@ai-sdk/vue';
import {
  type ChatInit,
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { effectScope, watchEffect } from 'vue';
import { startServer } from '../server/kit.ts';
import { eventually } from '../support/eventually.ts';
import { follow } from './follow.svelte.js';

/** The part of a chat that both frameworks have. */
interface Chat {
  readonly status: string;
  readonly messages: readonly UIMessage[];
  sendMessage(message: { readonly text: string }): Promise<void>;
  regenerate(): Promise<void>;
  resumeStream(): Promise<void>;
  stop(): Promise<void>;
  addToolApprovalResponse(answer: { readonly id: string; readonly approved: boolean }): unknown;
}

const frameworks = {
  // The packages have an `ai` of their own.
  Vue: {
    open: (init: ChatInit<UIMessage>): Chat => {
      const chat = effectScope(true).run(() => useChat(init as never));
      if (chat === undefined) throw new Error('The scope has ended.');
      return {
        ...(chat as unknown as Chat),
        get status() {
          return chat.status.value;
        },
        get messages() {
          return chat.messages.value;
        },
      };
    },
    follow: (read: () => string, seen: string[]) =>
      watchEffect(() => void seen.push(read()), { flush: 'sync' }),
  },
  Svelte: {
    open: (init: ChatInit<UIMessage>): Chat => new SvelteChat(init as never) as unknown as Chat,
    follow,
  },
};

let server: Awaited<ReturnType<typeof startServer>>;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.close());

const textOf = ({ messages }: Chat): string =>
  messages
    .map(({ parts }) => parts.map((part) => (part.type === 'text' ? part.text : '')).join(''))
    .join(' | ');
/** The state of each tool call. */
const statesOf = ({ messages }: Chat): string[] =>
  messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type.startsWith('tool-') && 'state' in part ? part.state : [])),
  ) as string[];
const ready = (chat: Chat): Promise<unknown> => eventually(() => expect(chat.status).toBe('ready'));

describe.each(Object.entries(frameworks))('useChat of %s', (name, { open, follow: watch }) => {
  const chatOf = (id: string, init: Partial<ChatInit<UIMessage>> = {}): Chat =>
    open({
      id: `${name}-${id}`,
      transport: new DefaultChatTransport({ api: `${server.url}/ui/chat` }),
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
      ...init,
    });
  const stored = async (id: string): Promise<UIMessage[]> =>
    (await fetch(`${server.url}/ui/chat/${name}-${id}/messages`)).json();

  test('streams an answer piece by piece, and shows a tool call', async () => {
    const chat = chatOf('stream');
    const seen: string[] = [];
    const leave = watch(() => textOf(chat), seen);
    await chat.sendMessage({ text: 'count 5 20' });
    await ready(chat);
    expect(textOf(chat)).toBe('count 5 20 | 0 1 2 3 4 ');
    await eventually(() => expect(seen.at(-1)).toBe('count 5 20 | 0 1 2 3 4 '));
    // The view has changed while the answer came.
    expect(new Set(seen).size).toBeGreaterThan(3);
    leave();
    await chat.sendMessage({ text: 'weather in Rome' });
    await ready(chat);
    expect(statesOf(chat)).toEqual(['output-available']);
    expect(textOf(chat)).toContain('Sunny in Rome');
  });

  test('approves a tool call, and has the same messages after a reload', async () => {
    const chat = chatOf('approve');
    await chat.sendMessage({ text: 'transfer 12' });
    await ready(chat);
    expect(statesOf(chat)).toEqual(['approval-requested']);
    const approval = chat.messages.at(-1)?.parts.find((part) => 'approval' in part);
    const { id } = (approval as { readonly approval: { readonly id: string } }).approval;
    await chat.addToolApprovalResponse({ id, approved: true });
    await eventually(() => expect(textOf(chat)).toContain('"moved":12'));
    await ready(chat);
    const again = chatOf('approve', { messages: await stored('approve') });
    expect(textOf(again)).toBe(textOf(chat));
    await again.sendMessage({ text: 'say bye' });
    await ready(again);
    expect(textOf(again)).toMatch(/ \| say bye \| bye$/);
  });

  test('gives an answer once more, as a branch', async () => {
    const chat = chatOf('again');
    await chat.sendMessage({ text: 'say one' });
    await ready(chat);
    await chat.sendMessage({ text: 'say two' });
    await ready(chat);
    await chat.regenerate();
    await ready(chat);
    expect(textOf(chat)).toBe('say one | one | say two | two');
    expect(await stored('again')).toHaveLength(4);
  });

  test('resumes a running answer after a reload', async () => {
    const chat = chatOf('resume');
    void chat.sendMessage({ text: 'count 20 50' });
    await eventually(() => expect(textOf(chat)).toContain('0 1 '));
    const again = chatOf('resume', { messages: [] });
    await again.resumeStream();
    await ready(again);
    expect(textOf(again)).toMatch(/0 1 2 .* 19 $/);
    await ready(chat);
  });
});
