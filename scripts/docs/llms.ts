import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { contents } from './contents.ts';

/** `llms.txt` (llmstxt.org): the name, a summary, and every page with its first sentence and its headings. `folder` precedes the pages. */
export function llmsText(root: string, folder: string): string {
  const { description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly description: string;
  };
  const sections = contents(root).map(({ title, pages }) => {
    const lines = pages.map(({ title: name, page }) => {
      const text = readFileSync(join(root, 'docs', page), 'utf8').replace(/```[\s\S]*?```/g, '');
      const about = [firstSentence(text), headings(text)].filter((part) => part !== '');
      return `- [${name}](${folder}${page})${about.length === 0 ? '' : `: ${about.join(' ')}`}`;
    });
    return `## ${title}\n\n${lines.join('\n')}`;
  });
  return `${['# Waymark', `> ${description}`, ...sections].join('\n\n')}\n`;
}

/** What the page is divided into, so that one can choose a page by its subject. */
function headings(text: string): string {
  const names = [...text.matchAll(/^## (.+)$/gm)].map(([, name = '']) => name);
  return names.length === 0 || names.length > 15 ? '' : `Sections: ${names.join('; ')}.`;
}

/** The first sentence of the first paragraph, without links. */
function firstSentence(text: string): string {
  const paragraph = text
    .replace(/<!--[\s\S]*?-->/g, '')
    .split(/\n{2,}/)
    .map((part) => part.trim())
    .find((part) => part !== '' && !/^(#|<|!\[|\||-)/.test(part));
  const plain = (paragraph ?? '')
    .replaceAll('\n', ' ')
    .replace(/\[([^\]]+)\]\([^)]*\)|\*\*/g, '$1');
  return /^.*?[.:](?= |$)/.exec(plain)?.[0].replace(/:$/, '.') ?? plain;
}
