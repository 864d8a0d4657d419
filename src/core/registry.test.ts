import { expect, test } from 'vitest';
import { createRegistry } from './registry.ts';

test('keeps values by key, in the order of their definition', () => {
  const registry = createRegistry<string>();
  registry.register('/tool/b', 'B');
  registry.register('/model/a', 'A');
  registry.register('/tool/a', 'C');
  expect(registry.lookup('/tool/a')).toBe('C');
  expect(registry.find('/tool/c')).toBeUndefined();
  expect(registry.list()).toEqual(['B', 'A', 'C']);
  expect(registry.list('/tool/')).toEqual(['B', 'C']);
  expect(registry.keys('/tool/')).toEqual(['/tool/b', '/tool/a']);
});

test('a key that is taken is ALREADY_EXISTS and keeps its value', () => {
  const registry = createRegistry<number>();
  registry.register('/tool/a', 1);
  expect(() => registry.register('/tool/a', 2)).toThrow(
    expect.objectContaining({
      status: 'ALREADY_EXISTS',
      message: 'There is already a tool "a". Choose another name.',
    }),
  );
  expect(registry.lookup('/tool/a')).toBe(1);
});

test('an unknown key says what there is of that kind, closest first', () => {
  const registry = createRegistry<number>();
  for (const name of ['zebra', 'Weather', 'wether', 'news']) registry.register(`/tool/${name}`, 1);
  registry.register('/model/weather', 1);
  expect(() => registry.lookup('/tool/weather')).toThrow(
    expect.objectContaining({
      status: 'NOT_FOUND',
      message:
        'No tool "weather" is defined. Did you mean "Weather"? Defined: Weather, wether, news, zebra.',
    }),
  );
  expect(() => registry.lookup('/prompt/x')).toThrow('No prompt "x" is defined. There are none.');
});

test('a long list is cut', () => {
  const registry = createRegistry<number>();
  for (let n = 0; n < 30; n++) registry.register(`/tool/t${n}`, n);
  expect(() => registry.lookup('/tool/t')).toThrow(/and 20 more\.$/);
});

test('names of object properties are ordinary keys', () => {
  const registry = createRegistry<number>();
  expect(registry.find('__proto__')).toBeUndefined();
  expect(() => registry.lookup('constructor')).toThrow('No action "constructor" is defined.');
});
