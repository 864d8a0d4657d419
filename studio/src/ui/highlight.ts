/** A piece of code and what it is. */
export interface Token {
  readonly kind: 'plain' | 'comment' | 'string' | 'number' | 'keyword' | 'name';
  readonly text: string;
}

const keywords = new Set(
  `abstract and as async await begin bool boolean break case catch char class const continue def default defer del delete do
  elif else end enum except export extends false finally float fn for from func function go if impl implements import in
  instanceof int interface is lambda let loop match mod module mut new nil none not null number object of or package pass
  private protected pub public raise readonly return self static string struct super switch then this throw throws trait
  true try type typeof undefined union unless until use using var void when where while with yield select insert update
  delete from where join group order by limit create table primary key values into`.split(/\s+/),
);

const tokens =
  /(\/\/[^\n]*|#(?![0-9a-fA-F]{3,8}\b)[^\n]*|\/\*[\s\S]*?(?:\*\/|$)|--\s[^\n]*)|("(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|`(?:[^`\\]|\\.)*`?)|(\b\d[\d_.]*(?:e[+-]?\d+)?\w*\b)|([\p{L}_$][\p{L}\p{N}_$]*)|([^\p{L}\p{N}_$"'`/#-]+|[/#-])/giu;

const unmarked = new Set(['', 'text', 'txt', 'md', 'markdown', 'plain', 'csv', 'log']);

/** Longer texts are shown as they are. */
const most = 60_000;

/** Code in pieces, well enough for the eye whatever the language. */
export function highlight(text: string, language: string): readonly Token[] {
  if (unmarked.has(language.toLowerCase()) || text.length > most) return [{ kind: 'plain', text }];
  const found: Token[] = [];
  const add = (kind: Token['kind'], piece: string): void => {
    const last = found.at(-1);
    if (last?.kind === kind) found[found.length - 1] = { kind, text: last.text + piece };
    else found.push({ kind, text: piece });
  };
  for (const [whole, comment, string, number, word] of text.matchAll(tokens)) {
    if (comment !== undefined) add('comment', whole);
    else if (string !== undefined) add('string', whole);
    else if (number !== undefined) add('number', whole);
    else if (word !== undefined && keywords.has(word)) add('keyword', whole);
    else add('plain', whole);
  }
  return found;
}
