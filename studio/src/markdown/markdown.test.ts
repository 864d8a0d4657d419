import fc from 'fast-check';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { Markdown } from './markdown.tsx';

/** The elements of a text, without the frame and what only styles it. */
function html(text: string): string {
  return renderToStaticMarkup(createElement(Markdown, { text }))
    .replace(/^<div class="markdown">|<\/div>$/g, '')
    .replaceAll(' dir="auto"', '');
}

/** All that a reader sees of a text. */
function seen(text: string): string {
  return html(text)
    .replace(/<br\/>/g, '\n')
    .replace(/<[^>]*>/g, '')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&quot;', '"')
    .replaceAll('&#x27;', "'")
    .replaceAll('&amp;', '&');
}

test('a text is read into its blocks', () => {
  expect(html('# Title\n\nOne\ntwo\n\n---\n\n> said')).toBe(
    '<div class="heading h1">Title</div><p>One<br/>two</p><hr/><blockquote><p>said</p></blockquote>',
  );
});

test('lists nest, begin with the number they were given, and have tasks', () => {
  expect(html('3. one\n4. two\n   - in it')).toBe(
    '<ol start="3"><li>one</li><li>two<ul><li>in it</li></ul></li></ol>',
  );
  expect(html('- [x] done\n- [ ] open')).toBe('<ul><li>☑ done</li><li>☐ open</li></ul>');
});

test('a table has as many cells in every row as in its head', () => {
  expect(html('| a | b |\n| :- | -: |\n| 1 |\n| x \\| y | **z** |')).toContain(
    '<tr><td class="align-left">1</td><td class="align-right"></td></tr>' +
      '<tr><td class="align-left">x | y</td><td class="align-right"><strong>z</strong></td></tr>',
  );
});

test('emphasis, code and struck text; a mark within a word is what it is', () => {
  expect(html('a **b _c_** `d*` ~~e~~')).toBe(
    '<p>a <strong>b <em>c</em></strong> <code>d*</code> <del>e</del></p>',
  );
  for (const plain of ['2 * 3 * 4', 'snake_case_name', 'a ** b']) {
    expect(html(plain)).toBe(`<p>${plain}</p>`);
  }
});

test('a fence that is still open is code already', () => {
  expect(html('```html\n<script>')).toContain('<figcaption><span>html</span>');
  expect(seen('```html\n<script>')).toContain('<script>');
});

test('HTML is text, and so is an address that is no web address', () => {
  for (const text of [
    '<b>x</b>',
    '<script>alert(1)</script>',
    '<div onclick="x()">\nhi\n</div>',
    'a <img src=x onerror=alert(1)> b',
    '<javascript:alert(1)>',
  ]) {
    expect(seen(text)).toBe(text);
    expect(html(text)).not.toMatch(/<(b|script|div|img|a)\b/);
  }
  for (const url of ['javascript:alert(1)', 'JaVaScRiPt:alert(1)', 'data:text/html,x', '//x.org']) {
    expect(html(`[a](${url})`)).not.toMatch(/<a |href=/);
  }
  expect(html('[a](https://x.org "t")')).toContain('href="https://x.org"');
});

test('a text without marks is seen as it is, in any script', () => {
  const plain = fc
    .string({ unit: 'grapheme', minLength: 1 })
    .map((each) =>
      each
        .replace(/[^\p{L}\p{N} ]/gu, '')
        .replace(/ +/g, ' ')
        .trim(),
    )
    .filter((each) => !/^\d|www|http|@/i.test(each));
  fc.assert(
    fc.property(plain, (each) => {
      expect(seen(each)).toBe(each);
    }),
  );
});

test('any text can be drawn, and no word of it is lost', () => {
  const marks = [
    '\n',
    '\n\n',
    '- ',
    '1. ',
    '> ',
    '```\n',
    '#',
    '|',
    '---',
    '    ',
    '**',
    '[',
    '](',
    '<b>',
  ];
  const text = fc
    .array(fc.oneof(fc.constantFrom(...marks), fc.constant('word ')), { maxLength: 60 })
    .map((pieces) => pieces.join(''));
  const words = (of: string): number => of.split('word').length - 1;
  fc.assert(
    fc.property(text, (each) => {
      const drawn = html(each);
      expect(drawn).not.toMatch(/<(?:script|b|iframe|style)\b/);
      // An address, the language of a fence and what exceeds the head of a table are not among what is seen.
      if (!/\]\(|```|\|/.test(each)) expect(words(seen(each))).toBe(words(each));
    }),
  );
});

test('absurdly deep nesting and thousands of marks that nothing answers are text', () => {
  for (const mark of ['> ', '- ', '[', '*', '`', '~~', '![', '<http://', '**a', '*a ', '[a] ']) {
    const long = `${mark.repeat(1_500)}deep`;
    expect(seen(long)).toContain('deep');
  }
});
