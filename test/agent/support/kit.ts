import { expect } from 'vitest';
import { type App, waymark } from '../../../src/app.ts';
import type { AppOptions } from '../../../src/app-options.ts';
import type { Status } from '../../../src/core/error.ts';
import type { Message, Part } from '../../../src/protocol/message.ts';
import type { Chunk, Input } from '../../../src/protocol/turn.ts';
import { memoryStore } from '../../../src/store/memory/memory-store.ts';

/** An app that is closed when the test leaves it. */
export type TestApp = App & AsyncDisposable & { readonly errors: unknown[] };

/** An app, by default over a memory store. `errors` collects background errors. */
export function openApp(options: AppOptions & { readonly storeless?: boolean } = {}): TestApp {
  const { storeless = false, ...rest } = options;
  const errors: unknown[] = [];
  const app = waymark({
    ...(!storeless && { store: memoryStore() }),
    onError: (error) => errors.push(error),
    ...rest,
  });
  return Object.assign(app, {
    errors,
    [Symbol.asyncDispose]: () => app.close({ grace: 1_000 }),
  });
}

/** What went wrong, but for what a test has thrown as "on purpose". */
export function unexpected({ errors }: Pick<TestApp, 'errors'>): readonly unknown[] {
  return errors.filter((error) => !String(error).endsWith('on purpose'));
}

/** A user's text as an input. */
export function say(text: string): Input {
  return { message: userSays(text) };
}

export function userSays(text: string): Message {
  return { role: 'user', content: [{ text }] };
}

export function modelSays(text: string): Message {
  return { role: 'model', content: [{ text }] };
}

/** Messages as `role: text`, tool parts named. */
export function told(messages: readonly Message[] | undefined): string[] {
  return (messages ?? []).map(({ role, content }) => `${role}: ${content.map(toText).join('')}`);
}

function toText(part: Part): string {
  if ('text' in part) return part.text;
  if ('toolRequest' in part) return `[${part.toolRequest.name}?]`;
  if ('toolResponse' in part) return `[${part.toolResponse.name}!]`;
  return `[${Object.keys(part)[0]}]`;
}

/** All of a stream. */
export async function all<Item>(stream: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

/** Reads a stream until an item fits. */
export async function until<Item>(
  stream: AsyncIterable<Item>,
  fits: (item: Item) => boolean,
): Promise<Item> {
  for await (const item of stream) if (fits(item)) return item;
  throw new Error('The stream ended before such an item came.');
}

/** Whether a chunk has a text of the model in it. */
export function hasText({ modelChunk }: Pick<Chunk, 'modelChunk'>): boolean {
  return modelChunk?.role === 'model' && modelChunk.content.some((part) => 'text' in part);
}

/** Expects a call to be refused with a status; gives the error. */
export async function refused(
  call: unknown,
  status: Status,
): Promise<Error & { details?: unknown }> {
  const error: unknown = await Promise.resolve(call).then(
    (value) => expect.fail(`expected ${status}, but it resolved to ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ name: 'WaymarkError', status });
  return error as Error;
}

/** The value, which must be there. */
export function must<Value>(value: Value | undefined): Value {
  return value ?? expect.fail('expected a value');
}
