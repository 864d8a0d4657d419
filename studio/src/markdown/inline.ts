/** A piece of a Markdown text within a block. */
export type Inline =
  | { readonly type: 'text' | 'code'; readonly text: string }
  | { readonly type: 'strong' | 'em' | 'del'; readonly content: readonly Inline[] }
  | { readonly type: 'link'; readonly url: string; readonly content: readonly Inline[] }
  | { readonly type: 'image'; readonly url: string; readonly alt: string }
  | { readonly type: 'break' };

/** How far the end of something is looked for, so that no text takes long. */
const farthest = 4_000;
const deepest = 6;

/** Reads the emphasis, code, links and images of a text. HTML is text. */
export function parseInline(text: string, depth = 0): readonly Inline[] {
  const nodes: Inline[] = [];
  const reading: Reading = { text, depth, brackets: undefined, searched: new Map() };
  let plain = '';
  const flush = (): void => {
    if (plain !== '') nodes.push({ type: 'text', text: plain });
    plain = '';
  };
  for (let at = 0; at < text.length; ) {
    const found = readSpecial(reading, at);
    if (found) {
      flush();
      nodes.push(found.node);
      at = found.end;
    } else if (text[at] === '\\' && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? '')) {
      plain += text[at + 1];
      at += 2;
    } else {
      plain += text[at];
      at++;
    }
  }
  flush();
  return nodes;
}

interface Found {
  readonly node: Inline;
  readonly end: number;
}

/** A text that is being read, with what was learnt about it on the way, so that nothing is looked for twice. */
interface Reading {
  readonly text: string;
  readonly depth: number;
  /** Where each `[` is closed. */
  brackets: ReadonlyMap<number, number> | undefined;
  /** Up to where there is no end for an emphasis, by its mark. */
  readonly searched: Map<string, number>;
}

function readSpecial(reading: Reading, at: number): Found | undefined {
  const { text, depth } = reading;
  switch (text[at]) {
    case '\n':
      return { node: { type: 'break' }, end: at + 1 };
    case '`':
      return readCode(text, at);
    case '*':
    case '_':
      return depth < deepest ? readEmphasis(reading, at) : undefined;
    case '~':
      return depth < deepest ? readStruck(text, at, depth) : undefined;
    case '!':
      return text[at + 1] === '[' ? readLink(reading, at + 1, true) : undefined;
    case '[':
      return depth < deepest ? readLink(reading, at, false) : undefined;
    case '<':
      return readAngled(text, at);
    case 'h':
      return readAddress(text, at);
    default:
      return undefined;
  }
}

function readCode(text: string, at: number): Found | undefined {
  const run = runAt(text, at);
  const marks = '`'.repeat(run);
  const from = at + run;
  for (let end = from; end < Math.min(text.length, from + farthest); ) {
    if (text[end] !== '`') end++;
    else {
      const closing = runAt(text, end);
      if (closing === run) {
        const inside = text.slice(from, end).replaceAll('\n', ' ');
        const code = /^ .*[^ ].* $/s.test(inside) ? inside.slice(1, -1) : inside;
        return { node: { type: 'code', text: code }, end: end + run };
      }
      end += closing;
    }
  }
  return { node: { type: 'text', text: marks }, end: from };
}

function readEmphasis({ text, depth, searched }: Reading, at: number): Found | undefined {
  const mark = text[at] ?? '*';
  const run = runAt(text, at);
  const opens = !isSpace(text[at + run]) && !(mark === '_' && isWord(text[at - 1]));
  if (!opens || run > 3) return { node: { type: 'text', text: mark.repeat(run) }, end: at + run };
  const from = at + run;
  const marks = mark.repeat(run);
  const limit = Math.min(text.length, from + farthest);
  for (let end = Math.max(from + 1, searched.get(marks) ?? 0); end < limit; ) {
    if (text[end] === '`') end = readCode(text, end)?.end ?? end + 1;
    else if (text[end] !== mark) end += text[end] === '\\' ? 2 : 1;
    else {
      const closing = runAt(text, end);
      const closes = !isSpace(text[end - 1]) && !(mark === '_' && isWord(text[end + closing]));
      if (closes && closing === run) {
        const content = parseInline(text.slice(from, end), depth + 1);
        return { node: emphasis(run, content), end: end + run };
      }
      end += closing;
    }
  }
  searched.set(marks, limit);
  return { node: { type: 'text', text: marks }, end: from };
}

function emphasis(run: number, content: readonly Inline[]): Inline {
  if (run === 1) return { type: 'em', content };
  const strong: Inline = { type: 'strong', content };
  return run === 2 ? strong : { type: 'em', content: [strong] };
}

function readStruck(text: string, at: number, depth: number): Found | undefined {
  const run = runAt(text, at);
  if (run !== 2) return { node: { type: 'text', text: '~'.repeat(run) }, end: at + run };
  const end = text.slice(0, at + farthest).indexOf('~~', at + 2);
  if (end <= at + 2) return undefined;
  return {
    node: { type: 'del', content: parseInline(text.slice(at + 2, end), depth + 1) },
    end: end + 2,
  };
}

const target =
  /\(\s*<?([^\s<>()]*(?:\([^\s<>()]*\)[^\s<>()]*)*)>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/y;

function readLink(reading: Reading, at: number, isImage: boolean): Found | undefined {
  const { text, depth } = reading;
  reading.brackets ??= bracketsOf(text);
  const end = reading.brackets.get(at);
  if (end === undefined) return undefined;
  target.lastIndex = end + 1;
  const [whole, url] = target.exec(text) ?? [];
  if (whole === undefined || url === undefined) return undefined;
  const label = text.slice(at + 1, end);
  const node: Inline = isImage
    ? { type: 'image', url, alt: label }
    : { type: 'link', url, content: parseInline(label, depth + 1) };
  return { node, end: end + 1 + whole.length };
}

function bracketsOf(text: string): ReadonlyMap<number, number> {
  const closed = new Map<number, number>();
  const open: number[] = [];
  for (let at = 0; at < text.length; at++) {
    if (text[at] === '\\') at++;
    else if (text[at] === '[') open.push(at);
    else if (text[at] === ']') {
      const from = open.pop();
      if (from !== undefined) closed.set(from, at);
    }
  }
  return closed;
}

const angled = /<((?:https?:\/\/|mailto:)[^\s<>]{1,2000})>/y;
const address = /https?:\/\/[^\s<>"'`]{1,2000}/y;

function readAngled(text: string, at: number): Found | undefined {
  angled.lastIndex = at;
  const [whole = '', url = ''] = angled.exec(text) ?? [];
  return whole === '' ? undefined : { node: linkTo(url), end: at + whole.length };
}

function readAddress(text: string, at: number): Found | undefined {
  if (isWord(text[at - 1])) return undefined;
  address.lastIndex = at;
  const [whole = ''] = address.exec(text) ?? [];
  // What ends the sentence does not belong to the address.
  const url = whole.replace(/[.,;:!?*_~)\]]+$/, (end) =>
    end.startsWith(')') && whole.includes('(') ? ')' : '',
  );
  return url === '' ? undefined : { node: linkTo(url), end: at + url.length };
}

function linkTo(url: string): Inline {
  return { type: 'link', url, content: [{ type: 'text', text: url.replace(/^mailto:/, '') }] };
}

function runAt(text: string, at: number): number {
  let end = at;
  while (text[end] === text[at] && end < text.length) end++;
  return end - at;
}

function isSpace(char: string | undefined): boolean {
  return char === undefined || /\s/.test(char);
}

function isWord(char: string | undefined): boolean {
  return char !== undefined && /[\p{L}\p{N}_]/u.test(char);
}
