import { expect, test } from 'vitest';
import { createEmitter, createKeyedEmitter } from './emitter.ts';

test('calls listeners in order, and one that subscribed twice until it has unsubscribed twice', () => {
  const emitter = createEmitter<[string]>();
  const heard: string[] = [];
  const listener = (word: string): void => void heard.push(word);
  const stop = emitter.subscribe(listener);
  emitter.subscribe(listener);
  emitter.emit('a');
  stop();
  stop();
  emitter.emit('b');
  expect(heard).toEqual(['a', 'a', 'b']);
  expect(emitter.size).toBe(1);
  emitter.clear();
  expect(emitter.size).toBe(0);
});

test('a listener that unsubscribes while it is called does not skip the next one', () => {
  const emitter = createEmitter();
  const heard: string[] = [];
  const stop = emitter.subscribe(() => {
    heard.push('first');
    stop();
  });
  emitter.subscribe(() => heard.push('second'));
  emitter.emit();
  emitter.emit();
  expect(heard).toEqual(['first', 'second', 'second']);
});

test('a keyed emitter calls the listeners of a key later, and forgets keys without listeners', async () => {
  const emitter = createKeyedEmitter<{ readonly id: number }>(({ id }) => `${id}`);
  const heard: string[] = [];
  const stop = emitter.subscribe({ id: 1 }, () => heard.push('one'));
  emitter.subscribe({ id: 2 }, () => heard.push('two'));
  emitter.emit({ id: 1 });
  emitter.emit({ id: 3 });
  expect(heard).toEqual([]);
  await Promise.resolve();
  expect(heard).toEqual(['one']);
  emitter.emitAll();
  await Promise.resolve();
  expect(heard).toEqual(['one', 'one', 'two']);
  stop();
  expect(emitter.keys()).toEqual([{ id: 2 }]);
  expect(emitter.size).toBe(1);
});
