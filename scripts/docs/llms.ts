import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { contents } from './contents.ts';

/** `llms.txt` (llmstxt.org): the name, a summary, and every page with its first sentence. `folder` precedes the pages. */
export function llmsText(root: string, folder: string): string {
  const { description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly description: string;
  };
  const sections = contents(root).map(({ title, pages }) => {
    const lines = pages.map(({ title: name, page }) => {
      const about = firstSentence(readFileSync(join(root, 'docs', page), 'utf8'));
      return `- [${name}](${folder}${page})${about === '' ? '' : `: ${about}`}`;
    });
    return `## ${title}\n\n${lines.join('\n')}`;
  });
  return `${['# Waymark', `> ${description}`, ...sections].join('\n\n')}\n`;
}

/** The first sentence of the first paragraph, without links. */
function firstSentence(text: string): string {
  const paragraph = text
    .replace(/<!--[\s\S]*?-->|```[\s\S]*?```/g, '')
    .split(/\n{2,}/)
    .map((part) => part.trim())
    .find((part) => part !== '' && !/^(#|<|!\[|\||-)/.test(part));
  const plain = (paragraph ?? '').replaceAll('\n', ' ').replace(/\[([^\]]+)\]\([^)]*\)/g, '$1');
  return /^.*?[.:](?= |$)/.exec(plain)?.[0].replace(/:$/, '.') ?? plain;
}
