import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Block, parseBlocks } from './blocks.ts';

const blocksOf = (text: string): readonly Block[] => parseBlocks(text).map(({ block }) => block);

test('a text is read into its blocks', () => {
  const text = '# Title\n\nOne\ntwo\n\n---\n\n> said\n\n```ts\nconst x = 1;\n```';
  expect(blocksOf(text)).toEqual([
    { type: 'heading', level: 1, text: 'Title' },
    { type: 'paragraph', text: 'One\ntwo' },
    { type: 'rule' },
    { type: 'quote', blocks: [{ type: 'paragraph', text: 'said' }] },
    { type: 'code', language: 'ts', text: 'const x = 1;' },
  ]);
});

test('lists nest, and begin with the number they were given', () => {
  expect(blocksOf('3. one\n4. two\n   - in it')).toEqual([
    {
      type: 'list',
      start: 3,
      items: [
        [{ type: 'paragraph', text: 'one' }],
        [
          { type: 'paragraph', text: 'two' },
          { type: 'list', items: [[{ type: 'paragraph', text: 'in it' }]] },
        ],
      ],
    },
  ]);
});

test('a table has as many cells in every row as in its head', () => {
  expect(blocksOf('| a | b |\n| :- | -: |\n| 1 |\n| 1 | 2 | 3 |\n| x \\| y | z |')).toEqual([
    {
      type: 'table',
      head: ['a', 'b'],
      align: ['left', 'right'],
      rows: [
        ['1', ''],
        ['1', '2'],
        ['x | y', 'z'],
      ],
    },
  ]);
});

test('a fence that is still open is code already', () => {
  expect(blocksOf('```html\n<script>')).toEqual([
    { type: 'code', language: 'html', text: '<script>' },
  ]);
});

test('HTML is text', () => {
  expect(blocksOf('<div onclick="x()">\nhi\n</div>')).toEqual([
    { type: 'paragraph', text: '<div onclick="x()">\nhi\n</div>' },
  ]);
});

/** Texts out of what Markdown is made of, where a reader goes wrong if anywhere. */
const markdown = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '\n',
        '\n\n',
        '- ',
        '1. ',
        '> ',
        '```',
        '#',
        '|',
        '---',
        '    ',
        '**',
        '[',
        '](',
      ),
      fc.string({ maxLength: 6 }),
    ),
    { maxLength: 60 },
  )
  .map((pieces) => pieces.join(''));

test('any text can be read, and no word of it is lost', () => {
  fc.assert(
    fc.property(markdown, (text) => {
      const sources = parseBlocks(text).map(({ source }) => source);
      const words = (of: string): string[] =>
        of.replace(/\r\n?/g, '\n').replaceAll('\t', '    ').split(/\s+/).filter(Boolean);
      expect(words(sources.join('\n'))).toEqual(words(text));
    }),
  );
});

test('absurdly deep nesting is text, and takes no time', () => {
  const deep = `${'> '.repeat(20_000)}deep`;
  const list = `${'- '.repeat(20_000)}deep`;
  for (const text of [deep, list]) expect(JSON.stringify(blocksOf(text))).toContain('deep');
});
