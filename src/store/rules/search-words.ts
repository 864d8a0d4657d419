import type { Message } from '../../protocol/message.ts';

/** So many different words of a session can be found; the newest messages come first. */
const maxWords = 20_000;
/** So many characters of a session are read for them. */
const maxCharacters = 2_000_000;
/** A longer word is found by its beginning. */
const maxWordLength = 40;

// Scripts without spaces between words: each character counts as a word.
const unspaced = String.raw`\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}`;
const word = new RegExp(`[${unspaced}]|[[\\p{L}\\p{M}\\p{N}]--[${unspaced}]]+`, 'gv');

/** The different words of a text, in lower case. They consist of letters, marks and digits only. */
function wordsOf(text: string): string[] {
  const found = text.normalize('NFKC').toLowerCase().match(word) ?? [];
  return [...new Set(found.map((each) => each.slice(0, maxWordLength)))];
}

/** The words that a query looks for in messages. A whole id is looked for among the ids only. */
export function queryWords(query: string): string[] {
  return uuid.test(query) ? [] : wordsOf(query);
}

const uuid = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;

/** The different words in the text of messages, each after a space. */
export function searchTextOf(messages: readonly Message[]): string {
  const words = new Set<string>();
  let left = maxCharacters;
  for (let at = messages.length - 1; at >= 0 && left > 0 && words.size < maxWords; at--) {
    for (const part of messages[at]?.content ?? []) {
      if (!('text' in part)) continue;
      for (const each of wordsOf(part.text.slice(0, left))) words.add(each);
      left -= part.text.length;
    }
  }
  let text = '';
  for (const each of [...words].slice(0, maxWords)) text += ` ${each}`;
  return text;
}

/** Whether each of these words begins one of a search text. */
export function hasWords(searchText: string, words: readonly string[]): boolean {
  return words.every((each) => searchText.includes(` ${each}`));
}
