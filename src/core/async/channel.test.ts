import { expect, test } from 'vitest';
import { Channel } from './channel.ts';

async function collect<T>(channel: Channel<T>): Promise<T[]> {
  const values: T[] = [];
  for await (const value of channel) values.push(value);
  return values;
}

test('values arrive in order, and close keeps those that were pushed before', async () => {
  const channel = new Channel<number>();
  for (let value = 0; value < 5000; value++) channel.push(value);
  const iterator = channel[Symbol.asyncIterator]();
  for (let value = 0; value < 3000; value++) expect((await iterator.next()).value).toBe(value);
  for (let value = 5000; value < 6000; value++) channel.push(value);
  channel.close();
  channel.push(6000);
  expect(await collect(channel)).toEqual(Array.from({ length: 3000 }, (_, at) => at + 3000));
});

test('consumers that wait get values in the order in which they asked, and close ends the others', async () => {
  const channel = new Channel<string>();
  const iterator = channel[Symbol.asyncIterator]();
  const asked = [iterator.next(), iterator.next(), iterator.next()];
  channel.push('a');
  channel.push('b');
  channel.close();
  expect((await Promise.all(asked)).map(({ value }) => value)).toEqual(['a', 'b', undefined]);
});

test('leaving a loop early keeps the rest for the next one', async () => {
  const channel = new Channel<number>();
  for (const value of [1, 2, 3]) channel.push(value);
  channel.close();
  for await (const value of channel) {
    expect(value).toBe(1);
    break;
  }
  expect(await collect(channel)).toEqual([2, 3]);
});

test('fail comes after the values, reaches consumers that wait, and the first end stands', async () => {
  const channel = new Channel<number>();
  channel.push(1);
  channel.fail(new Error('broken'));
  channel.close();
  const iterator = channel[Symbol.asyncIterator]();
  expect((await iterator.next()).value).toBe(1);
  await expect(iterator.next()).rejects.toThrow('broken');

  const other = new Channel<number>();
  const waiting = other[Symbol.asyncIterator]().next();
  other.fail(undefined);
  await expect(waiting).rejects.toBe(undefined);
});
