import { expect, test } from 'vitest';
import { interruptsAtEnd } from '../api/interrupts.ts';
import type { Message, ToolRequestPart } from '../protocol/message.ts';
import { allAnswers, answersTo, withAnswers } from './interrupts.ts';

const user: Message = { role: 'user', content: [{ text: 'Book it' }] };
const asking = (
  ref: string,
  interrupt: ToolRequestPart['metadata'] = { interrupt: true },
): ToolRequestPart => ({
  toolRequest: { name: 'book', ref, input: { what: ref } },
  metadata: interrupt,
});

test('the interrupted requests a conversation ends with wait', () => {
  const messages: Message[] = [
    user,
    {
      role: 'model',
      content: [
        { text: 'One moment' },
        asking('1', { interrupt: { price: 4 } }),
        asking('2', { pendingOutput: 0 }),
        asking('3', { interrupt: true, expiresAt: '2026-11-16T12:00:00.000Z' }),
      ],
    },
  ];
  expect(interruptsAtEnd(messages)).toMatchObject([
    { toolName: 'book', ref: '1', input: { what: '1' }, metadata: { price: 4 } },
    { ref: '3', metadata: true, expiresAt: '2026-11-16T12:00:00.000Z' },
  ]);
});

test('one that was answered, or followed by something else, does not wait', () => {
  const model: Message = { role: 'model', content: [asking('1')] };
  const answered: Message = {
    role: 'tool',
    content: [{ toolResponse: { name: 'book', ref: '1', output: 0 } }],
  };
  expect(interruptsAtEnd([user, model, answered])).toEqual([]);
  expect(interruptsAtEnd([user, model, user])).toEqual([]);
  expect(interruptsAtEnd([user, { role: 'model', content: [{ text: 'Done' }] }])).toEqual([]);
  expect(interruptsAtEnd([])).toEqual([]);
});

test('a tool that asked again after a restart waits with what it asks now', () => {
  const messages: Message[] = [
    user,
    { role: 'model', content: [asking('1', { interrupt: 'sure?' })] },
    { role: 'tool', content: [asking('1', { interrupt: 'really sure?' })] },
  ];
  expect(interruptsAtEnd(messages)).toMatchObject([{ metadata: 'really sure?' }]);
});

test('only when all are answered is there something to send', () => {
  const waiting = interruptsAtEnd([user, { role: 'model', content: [asking('1'), asking('2')] }]);
  const [one, two] = waiting;
  if (!one || !two) throw new Error('Two interrupts were expected');
  const first = withAnswers(waiting, [one.respond(null)]);
  expect(allAnswers(first)).toBeUndefined();
  const approval = two.approve({ resumed: { by: 'me' } });
  expect(allAnswers(withAnswers(first, [approval]))).toEqual([one.respond(null), approval]);
});

test('a function answers those that still wait', () => {
  const waiting = interruptsAtEnd([user, { role: 'model', content: [asking('1'), asking('2')] }]);
  const [one, two] = waiting;
  if (!one || !two) throw new Error('Two interrupts were expected');
  const first = withAnswers(waiting, answersTo(waiting, one.decline()));
  const rest = answersTo(first, (request) => request.approve());
  expect(rest).toEqual([two.approve()]);
  expect(allAnswers(withAnswers(first, rest))).toEqual([one.decline(), two.approve()]);
});

test('an answer to something that does not wait changes nothing', () => {
  const [one] = interruptsAtEnd([user, { role: 'model', content: [asking('1')] }]);
  if (!one) throw new Error('An interrupt was expected');
  const others = interruptsAtEnd([user, { role: 'model', content: [asking('2')] }]);
  expect(withAnswers(others, [one.approve()])).toBe(others);
});

test('S161: an interrupt of false is none, other falsy values are', () => {
  const content = [false, 0, '', null].map((interrupt, at) => asking(`${at}`, { interrupt }));
  const waiting = interruptsAtEnd([user, { role: 'model', content }]);
  expect(waiting.map(({ metadata }) => metadata)).toEqual([0, '', null]);
});
