import { expect, test } from 'vitest';
import { interruptsAtEnd } from '../api/interrupts.ts';
import type { Message } from '../protocol/message.ts';
import { MessageViews, type OpenCalls } from './message-view.ts';

const idle: OpenCalls = { running: false, interrupts: [] };
const user: Message = { role: 'user', content: [{ text: 'Draw a cat' }] };
const calling: Message = {
  role: 'model',
  content: [
    { reasoning: 'A cat. ' },
    { reasoning: 'Easy.' },
    { text: 'One moment.' },
    { toolRequest: { name: 'draw', ref: '1', input: { what: 'cat' } } },
    { toolRequest: { name: 'draw', ref: '2', input: { what: 'tail' } } },
  ],
};
const answered: Message = {
  role: 'tool',
  content: [
    {
      toolResponse: {
        name: 'draw',
        ref: '1',
        output: 'drawn',
        content: [{ media: { url: 'https://example.com/cat.png', contentType: 'image/png' } }],
      },
    },
    {
      toolResponse: { name: 'draw', ref: '2', output: 'No paper' },
      metadata: { error: { status: 'UNKNOWN' } },
    },
  ],
};
const final: Message = {
  role: 'model',
  content: [
    { text: 'Here it is.' },
    { media: { url: 'data:image/png;base64,', contentType: 'image/png' } },
    { media: { url: 'data:,thought' }, metadata: { reasoning: true } },
  ],
};

test('a conversation with reasoning, tools and files is rows without parts', () => {
  const views = new MessageViews().of([user, calling, answered, final], idle);
  expect(views).toMatchObject([
    { index: 0, role: 'user', text: 'Draw a cat', toolCalls: [] },
    {
      index: 1,
      role: 'model',
      text: 'One moment.',
      reasoning: 'A cat. Easy.',
      toolCalls: [
        {
          name: 'draw',
          input: { what: 'cat' },
          output: 'drawn',
          status: 'done',
          files: [{ url: 'https://example.com/cat.png', contentType: 'image/png' }],
        },
        { name: 'draw', input: { what: 'tail' }, output: 'No paper', status: 'failed' },
      ],
    },
    { index: 3, text: 'Here it is.', files: [{ url: 'data:image/png;base64,' }] },
  ]);
});

test('no row is empty', () => {
  const nothing: Message[] = [
    { role: 'model', content: [] },
    { role: 'model', content: [{ text: '' }] },
    { role: 'user', content: [{ data: { answer: 4 } }] },
    { role: 'model', content: [{ custom: { trace: 1 } }] },
  ];
  expect(new MessageViews().of([...nothing, user], idle)).toMatchObject([{ index: 4 }]);
});

test('a call runs, waits for a person, is stopped or is declined', () => {
  const statuses = (messages: Message[], open = idle): string[] =>
    new MessageViews()
      .of(messages, open)
      .flatMap(({ toolCalls }) => toolCalls.map(({ status }) => status));
  const asked: Message = {
    role: 'model',
    content: [
      { toolRequest: { name: 'pay', ref: '1' }, metadata: { interrupt: true } },
      { toolRequest: { name: 'look', ref: '2' }, metadata: { pendingOutput: null } },
    ],
  };
  const interrupts = interruptsAtEnd([user, asked]);
  expect(statuses([user, asked], { running: false, interrupts })).toEqual(['waiting', 'done']);
  expect(statuses([user, asked], { running: true, interrupts: [] })).toEqual(['running', 'done']);
  expect(statuses([user, asked, user])).toEqual(['stopped', 'done']);
  const declined: Message = {
    role: 'tool',
    content: [
      {
        toolResponse: { name: 'pay', ref: '1', output: 'The user declined.' },
        metadata: { error: { status: 'CANCELLED', reason: 'declined' } },
      },
    ],
  };
  expect(statuses([user, asked, declined])).toEqual(['declined', 'done']);
  const half: Message = {
    role: 'tool',
    content: [
      { toolResponse: { name: 'pay', ref: '1', output: '50 %' }, metadata: { partial: true } },
    ],
  };
  expect(statuses([user, asked, half], { running: true, interrupts: [] })).toEqual([
    'running',
    'done',
  ]);
});

test('what a provider ran itself is answered in the message that asked', () => {
  const searched: Message = {
    role: 'model',
    content: [
      { toolRequest: { name: 'web', ref: '1' }, metadata: { providerExecuted: true } },
      { toolResponse: { name: 'web', ref: '1', output: [] }, metadata: { providerExecuted: true } },
      { text: 'Nothing found.' },
    ],
  };
  expect(new MessageViews().of([searched], idle)).toMatchObject([
    { text: 'Nothing found.', toolCalls: [{ name: 'web', status: 'done', output: [] }] },
  ]);
});

test('what has not changed stays the same object', () => {
  const views = new MessageViews();
  const running = { running: true, interrupts: [] };
  const first = views.of([user, calling], running);
  expect(views.of([user, calling], running)).toBe(first);
  const second = views.of([user, calling, answered], running);
  expect(second[0]).toBe(first[0]);
  expect(second[1]).not.toBe(first[1]);
  const third = views.of([user, calling, answered, final], idle);
  expect(third[0]).toBe(first[0]);
  // A row without tool calls does not depend on what runs.
  expect(views.of([user, calling, answered, final], running)).toBe(third);
});
