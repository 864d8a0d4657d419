/** A block of a Markdown text. Texts in it are still to be read by `parseInline`. */
export type Block =
  | { readonly type: 'paragraph'; readonly text: string }
  | { readonly type: 'heading'; readonly level: number; readonly text: string }
  | { readonly type: 'code'; readonly language: string; readonly text: string }
  | { readonly type: 'quote'; readonly blocks: readonly Block[] }
  | {
      readonly type: 'list';
      /** The first number; absent for bullets. */
      readonly start?: number;
      readonly items: readonly (readonly Block[])[];
    }
  | {
      readonly type: 'table';
      readonly head: readonly string[];
      readonly align: readonly ('left' | 'center' | 'right' | undefined)[];
      readonly rows: readonly (readonly string[])[];
    }
  | { readonly type: 'rule' };

/** A block and the text it was read from, by which it is known again while the rest still streams in. */
export interface SourceBlock {
  readonly source: string;
  readonly block: Block;
}

/** How deep quotes and lists may nest; what is deeper is plain text. */
const deepest = 8;

const fence = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)[^`]*$/;
const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const rule = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const quote = /^ {0,3}> ?/;
const item = /^( {0,3})([-*+]|\d{1,9}[.)])(?:( {1,4})|$)(.*)$/;
const divider = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;

/** Reads Markdown into blocks. Anything that is not Markdown, HTML above all, is text. */
export function parseBlocks(text: string): readonly SourceBlock[] {
  return readBlocks(text.replace(/\r\n?/g, '\n').replaceAll('\t', '    ').split('\n'), 0);
}

function readBlocks(lines: readonly string[], depth: number): readonly SourceBlock[] {
  const blocks: SourceBlock[] = [];
  for (let at = 0; at < lines.length; ) {
    if (lines[at]?.trim() === '') {
      at++;
      continue;
    }
    const { block, end } = readBlock(lines, at, depth);
    blocks.push({ block, source: lines.slice(at, end).join('\n') });
    at = end;
  }
  return blocks;
}

interface Read {
  readonly block: Block;
  readonly end: number;
}

function readBlock(lines: readonly string[], at: number, depth: number): Read {
  const line = lines[at] ?? '';
  const nested = depth < deepest;
  const [, marks = '', title = ''] = heading.exec(line) ?? [];
  if (marks) return { block: { type: 'heading', level: marks.length, text: title }, end: at + 1 };
  if (rule.test(line)) return { block: { type: 'rule' }, end: at + 1 };
  if (fence.test(line)) return readCode(lines, at);
  if (nested && quote.test(line)) return readQuote(lines, at, depth);
  if (nested && item.test(line)) return readList(lines, at, depth);
  if (line.includes('|') && divider.test(lines[at + 1] ?? '')) return readTable(lines, at);
  return readParagraph(lines, at, nested);
}

function readCode(lines: readonly string[], at: number): Read {
  const [, opening = '```', language = ''] = fence.exec(lines[at] ?? '') ?? [];
  const indent = /^ */.exec(lines[at] ?? '')?.[0].length ?? 0;
  let end = at + 1;
  const isClosing = (line: string): boolean => {
    const trimmed = line.trim();
    return (
      trimmed.length >= opening.length && trimmed === (opening[0] ?? '').repeat(trimmed.length)
    );
  };
  while (end < lines.length && !isClosing(lines[end] ?? '')) end++;
  const inside = lines.slice(at + 1, end).map((line) => withoutIndent(line, indent));
  // An answer that still streams in has not closed its fence yet.
  return {
    block: { type: 'code', language, text: inside.join('\n') },
    end: Math.min(end + 1, lines.length),
  };
}

function readQuote(lines: readonly string[], at: number, depth: number): Read {
  let end = at;
  while (end < lines.length && quote.test(lines[end] ?? '')) end++;
  const inside = lines.slice(at, end).map((line) => line.replace(quote, ''));
  const blocks = readBlocks(inside, depth + 1).map(({ block }) => block);
  return { block: { type: 'quote', blocks }, end };
}

function readList(lines: readonly string[], at: number, depth: number): Read {
  const [, , first = '-'] = item.exec(lines[at] ?? '') ?? [];
  const ordered = /\d/.test(first);
  const kind = first.at(-1);
  const items: (readonly Block[])[] = [];
  let end = at;
  while (end < lines.length) {
    const [, before = '', marker = '', gap = ' ', rest = ''] = item.exec(lines[end] ?? '') ?? [];
    if (marker === '' || marker.at(-1) !== kind || rule.test(lines[end] ?? '')) break;
    const indent = before.length + marker.length + gap.length;
    const inside = [rest];
    end++;
    while (end < lines.length && belongsTo(lines, end, indent)) {
      inside.push(withoutIndent(lines[end] ?? '', indent));
      end++;
    }
    items.push(readBlocks(inside, depth + 1).map(({ block }) => block));
  }
  const start = ordered ? { start: Number.parseInt(first, 10) } : {};
  return { block: { type: 'list', ...start, items }, end };
}

// An item continues with indented lines, blank lines before those, and unindented continuation text.
function belongsTo(lines: readonly string[], at: number, indent: number): boolean {
  const line = lines[at] ?? '';
  if (line.trim() === '') {
    const next = lines[at + 1] ?? '';
    return next.trim() !== '' && spacesOf(next) >= indent;
  }
  if (spacesOf(line) >= Math.min(indent, 2) && !isItemAt(line, indent)) return true;
  const follows = (lines[at - 1] ?? '').trim() !== '';
  return follows && !startsBlock(line) && !item.test(line);
}

function isItemAt(line: string, indent: number): boolean {
  return item.test(line) && spacesOf(line) < Math.min(indent, 2);
}

function readTable(lines: readonly string[], at: number): Read {
  const head = cells(lines[at] ?? '');
  const align = cells(lines[at + 1] ?? '').map((cell) => {
    const left = cell.startsWith(':');
    if (cell.endsWith(':')) return left ? 'center' : 'right';
    return left ? 'left' : undefined;
  });
  let end = at + 2;
  while (end < lines.length && (lines[end] ?? '').includes('|')) end++;
  const rows = lines.slice(at + 2, end).map((line) => {
    const row = cells(line);
    return head.map((_, column) => row[column] ?? '');
  });
  return { block: { type: 'table', head, align, rows }, end };
}

function cells(line: string): string[] {
  return line
    .trim()
    .replace(/^\||(?<!\\)\|$/g, '')
    .split(/(?<!\\)\|/)
    .map((cell) => cell.trim().replaceAll('\\|', '|'));
}

function readParagraph(lines: readonly string[], at: number, nested: boolean): Read {
  let end = at + 1;
  const goesOn = (line: string): boolean =>
    line.trim() !== '' && !startsBlock(line) && !(nested && item.test(line));
  while (end < lines.length && goesOn(lines[end] ?? '')) end++;
  const text = lines.slice(at, end).map((line) => line.trimStart());
  return { block: { type: 'paragraph', text: text.join('\n') }, end };
}

function startsBlock(line: string): boolean {
  return heading.test(line) || fence.test(line) || rule.test(line) || quote.test(line);
}

function spacesOf(line: string): number {
  return line.length - line.trimStart().length;
}

function withoutIndent(line: string, indent: number): string {
  return line.slice(Math.min(indent, spacesOf(line)));
}
