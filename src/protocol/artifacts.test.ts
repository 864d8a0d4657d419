import { expect, test } from 'vitest';
import { editArtifactText } from './artifacts.ts';

const artifact = { name: 'poem.txt', parts: [{ text: 'roses are red' }], metadata: { v: 1 } };
const textOf = (edits: Parameters<typeof editArtifactText>[1]): unknown =>
  editArtifactText(artifact, edits).artifact.parts[0];

test('edits by place and by text are made at once, in places of the text before', () => {
  expect(textOf([{ from: 0, to: 5, text: 'violets' }])).toEqual({ text: 'violets are red' });
  expect(
    textOf([
      { find: 'red', replace: 'blue' },
      { from: 0, to: 0, text: 'all ' },
    ]),
  ).toEqual({
    text: 'all roses are blue',
  });
  expect(textOf([])).toEqual({ text: 'roses are red' });
  expect(editArtifactText(artifact, []).artifact.metadata).toEqual({ v: 1 });
});

test.each([
  ['a place outside', [{ from: 10, to: 99, text: '' }], /from 10 to 99 does not fit a text of 13/],
  ['a place backwards', [{ from: 3, to: 1, text: '' }], /from 3 to 1/],
  ['a missing text', [{ find: 'blue', replace: '' }], /"blue" does not occur/],
  ['an ambiguous text', [{ find: 're', replace: '' }], /"re" occurs more than once/],
  ['an empty text', [{ find: '', replace: 'x' }], /does not occur/],
  [
    'overlapping places',
    [
      { from: 0, to: 5, text: '' },
      { from: 4, to: 6, text: '' },
    ],
    /overlap/,
  ],
])('refuses %s', (_, edits, message) => {
  expect(() => textOf(edits)).toThrow(message);
});

test('refuses an artifact that is not one text', () => {
  const two = { name: 'two', parts: [{ text: 'a' }, { text: 'b' }] };
  expect(() => editArtifactText(two, [])).toThrow(/"two" has 2 text parts/);
});
