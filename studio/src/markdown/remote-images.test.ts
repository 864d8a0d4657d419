import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { expect, test } from 'vitest';
import { Media } from '../conversation/part-view.tsx';
import { Markdown } from './markdown.tsx';

const markdown = (text: string): string => renderToStaticMarkup(createElement(Markdown, { text }));

test('a picture from elsewhere is a link, and is not loaded by the page', () => {
  for (const url of ['https://tracker.example/p.png', 'HTTP://tracker.example/p.png']) {
    const html = markdown(`![chart](${url})`);
    expect(html).not.toMatch(/<img|src=|srcset|background/i);
    expect(html).toContain(`href="${url}"`);
    expect(html).toContain('rel="noopener noreferrer"');
  }
  for (const url of ['//tracker.example/p.png', 'javascript:alert(1)', 'file:///etc/passwd']) {
    expect(markdown(`![chart](${url})`)).not.toMatch(/<img|<a |src=/i);
  }
  expect(markdown('<img src="https://tracker.example/p.png">')).not.toContain('<img');
});

test('a file from elsewhere is named and not loaded', () => {
  for (const contentType of ['image/png', 'audio/mpeg', 'text/html', undefined]) {
    const media = { url: 'https://tracker.example/p', contentType };
    const html = renderToStaticMarkup(createElement(Media, { media }));
    expect(html).toContain('https://tracker.example/p');
    expect(html).not.toMatch(/src=|href=/);
  }
});

test('a picture in the message itself is shown', () => {
  expect(markdown('![dot](data:image/png;base64,AAAA)')).toContain('<img');
});
