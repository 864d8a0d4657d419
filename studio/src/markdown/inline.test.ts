import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Inline, parseInline } from './inline.ts';

/** All that a reader sees of a text. */
function seen(nodes: readonly Inline[]): string {
  return nodes
    .map((node) => {
      if ('content' in node) return seen(node.content);
      if ('text' in node) return node.text;
      return node.type === 'image' ? node.alt : '\n';
    })
    .join('');
}

const text = (of: string): Inline => ({ type: 'text', text: of });

test('emphasis, code and struck text', () => {
  expect(parseInline('a **b _c_** `d*` ~~e~~')).toEqual([
    text('a '),
    { type: 'strong', content: [text('b '), { type: 'em', content: [text('c')] }] },
    text(' '),
    { type: 'code', text: 'd*' },
    text(' '),
    { type: 'del', content: [text('e')] },
  ]);
});

test('a star or a line within a word is what it is', () => {
  for (const plain of ['2 * 3 * 4', 'snake_case_name', 'a ** b', '\\*no\\*']) {
    const nodes = parseInline(plain);
    expect(nodes.every(({ type }) => type === 'text')).toBe(true);
    expect(seen(nodes)).toBe(plain.replaceAll('\\', ''));
  }
});

test('links and pictures, written and bare', () => {
  expect(parseInline('[a](https://x.org "t") ![p](data:,x) see https://y.org/(1).')).toEqual([
    { type: 'link', url: 'https://x.org', content: [text('a')] },
    text(' '),
    { type: 'image', url: 'data:,x', alt: 'p' },
    text(' see '),
    { type: 'link', url: 'https://y.org/(1)', content: [text('https://y.org/(1)')] },
    text('.'),
  ]);
});

test('HTML is text, and so is an address in angles that is none', () => {
  for (const html of ['<b>x</b>', '<script>alert(1)</script>', '<javascript:alert(1)>']) {
    expect(parseInline(html)).toEqual([text(html)]);
  }
});

test('a text without marks is seen as it is, in any script', () => {
  const plain = fc.string({ unit: 'grapheme' }).filter((each) => !/[*_`~[\]!<\\\nh]/.test(each));
  fc.assert(
    fc.property(plain, (each) => {
      expect(seen(parseInline(each))).toBe(each);
    }),
  );
});

test('any text can be read, and every letter of it is seen', () => {
  const marked = fc
    .array(
      fc.constantFrom('*', '**', '_', '`', '~~', '[', ']', '(', ')', '!', '<', '>', 'word', ' '),
      {
        maxLength: 40,
      },
    )
    .map((pieces) => pieces.join(''));
  fc.assert(
    fc.property(marked, (each) => {
      const nodes = parseInline(each);
      const hasAddress = JSON.stringify(nodes).includes('"url"');
      const words = (of: string): number => of.split('word').length - 1;
      // Only the address of a link is not among what is seen.
      if (!hasAddress) expect(words(seen(nodes))).toBe(words(each));
    }),
  );
});

test('thousands of marks that nothing answers take no time', () => {
  for (const mark of ['[', '*', '`', '~~', '![', '<http://', 'https://', '**a', '*a ', '[a] ']) {
    const long = mark.repeat(5_000);
    expect(seen(parseInline(long)).length).toBeGreaterThan(0);
  }
});
