import { type MarkedToken, marked, type Token, type Tokens } from 'marked';

/** Longer texts are shown as they are, so that no text takes long. */
const longest = 100_000;

/** Quotes are read recursively: thousands of marks would overflow the stack. */
const tooDeep = /(?:^|\n)[ \t]*(?:>[ \t]*){60}/;

/** Reads Markdown into blocks. HTML, and whatever else is no Markdown, is text. */
export function parseBlocks(text: string): readonly Token[] {
  if (text.length > longest || tooDeep.test(text)) return [plain(text)];
  try {
    return marked.lexer(text, { gfm: true, breaks: true }).filter(({ type }) => type !== 'space');
  } catch {
    // Too deeply nested for the stack.
    return [plain(text)];
  }
}

function plain(text: string): Tokens.Text {
  return { type: 'text', raw: text, text };
}

/** A token as one of those that Markdown has by itself: no extension is installed. */
export function known(token: Token): MarkedToken {
  return token as MarkedToken;
}
