import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';

/** Links, images and anchors of the built pages that lead nowhere, as `page: link`. */
export function brokenLinks(folder: string): string[] {
  const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((name) => name.replaceAll('\\', '/'))
    .filter((name) => name.endsWith('.html') && name !== '404.html');
  const idsOf = new Map(pages.map((page) => [page, ids(readFileSync(join(folder, page), 'utf8'))]));
  return pages.flatMap((page) => {
    const html = readFileSync(join(folder, page), 'utf8');
    const links = [
      ...html.matchAll(/<(?:a|img|link|script|source)\b[^>]*?\s(?:href|src)="([^"]*)"/g),
    ];
    return [...new Set(links.map(([, link = '']) => link.replaceAll('&amp;', '&')))]
      .filter((link) => isBroken(link, page, { folder, idsOf }))
      .map((link) => `${page}: ${link}`);
  });
}

interface Site {
  readonly folder: string;
  readonly idsOf: ReadonlyMap<string, ReadonlySet<string>>;
}

function isBroken(link: string, page: string, { folder, idsOf }: Site): boolean {
  if (/^(https?|mailto|data):/.test(link)) return false;
  const [path = '', anchor] = link.split('#').map(decodeURIComponent);
  const target = path === '' ? page : fileOf(path, page, folder);
  if (target === undefined) return true;
  return anchor !== undefined && anchor !== '' && idsOf.get(target)?.has(anchor) !== true;
}

/** The file that a server would answer with. */
function fileOf(path: string, page: string, folder: string): string | undefined {
  const full = path.startsWith('/') ? path.slice(1) : posix.join(dirname(page), path);
  const candidates = [full, `${full}.html`, posix.join(full, 'index.html')];
  return candidates.find((name) => {
    const file = join(folder, name);
    return existsSync(file) && statSync(file).isFile();
  });
}

const ids = (html: string): Set<string> =>
  new Set([...html.matchAll(/\sid="([^"]*)"/g)].map(([, id = '']) => id));
