import { type Json, setOwn } from '../../core/json/json.ts';

/** The JSON value in an answer: the whole text, what a code fence holds, or the longest value between other words. */
export function findJson(text: string): Json | undefined {
  try {
    return JSON.parse(text) as Json;
  } catch {
    const found = findPartialJson(text);
    return found?.complete ? found.value : undefined;
  }
}

/** The JSON value in an answer that may still be growing. */
export function findPartialJson(text: string): PartialJson | undefined {
  const fence = /```(?:json)?[ \t]*\n?/i.exec(text);
  const fenced = fence && parsePartialJson(text, fence.index + fence[0].length);
  if (fenced) return fenced;
  let longest: PartialJson | undefined;
  let length = 0;
  for (let at = text.search(/[[{]/); at >= 0; ) {
    const found = parsePartialJson(text, at);
    if (found && found.end - at > length) {
      longest = found;
      length = found.end - at;
    }
    // Continue after a value that was found; otherwise the bracket belonged to the text around it.
    const from = found ? found.end : at + 1;
    const next = text.slice(from).search(/[[{]/);
    at = next < 0 ? -1 : from + next;
  }
  // A bare text, number or word is an answer only if nothing else stands around it.
  return (
    longest ?? (/[^\s]/.test(text) && !/^\s*[[{]/.test(text) ? parsePartialJson(text) : undefined)
  );
}

/** A value read from a text that may break off, and where it ends. */
export interface PartialJson {
  readonly value: Json;
  /** Whether the value is all there; otherwise it is what can be said of it so far. */
  readonly complete: boolean;
  /** The place behind what was read. */
  readonly end: number;
}

/**
 * Reads a JSON value from a place in a text that may break off anywhere: texts, arrays and objects are given as far as they
 * go; a number, word or key that may still grow is left out. `undefined` if there is nothing to say yet, or it is not JSON.
 */
export function parsePartialJson(text: string, start = 0): PartialJson | undefined {
  const reader = new Reader(text, start);
  const value = reader.value(0);
  if (value === nothing || reader.broken) return undefined;
  return { value, complete: !reader.cut, end: reader.at };
}

const nothing = Symbol('nothing');
type Read = Json | typeof nothing;

// Code that walks over values later is recursive as well.
const maxDepth = 512;

const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

class Reader {
  readonly #text: string;
  at: number;
  /** The text ended before the value did. */
  cut = false;
  /** The text is not JSON. */
  broken = false;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  value(depth: number): Read {
    this.#space();
    const character = this.#text[this.at];
    if (character === undefined) return this.#cutOff();
    if (character === '{') return depth < maxDepth ? this.#object(depth) : this.#break();
    if (character === '[') return depth < maxDepth ? this.#array(depth) : this.#break();
    if (character === '"') return this.#string();
    return this.#word();
  }

  #object(depth: number): Read {
    const object: Record<string, Json> = {};
    this.at++;
    for (;;) {
      this.#space();
      const next = this.#text[this.at];
      if (next === '}') {
        this.at++;
        return object;
      }
      if (next === undefined) return this.#cutOff(object);
      if (next !== '"') return this.#break();
      const key = this.#string();
      if (this.cut || key === nothing) return object;
      this.#space();
      if (this.#text[this.at] === undefined) return this.#cutOff(object);
      if (this.#text[this.at] !== ':') return this.#break();
      this.at++;
      const value = this.value(depth + 1);
      if (value !== nothing) setOwn(object, String(key), value);
      if (this.cut || this.broken) return object;
      if (!this.#comma('}')) return object;
    }
  }

  #array(depth: number): Read {
    const array: Json[] = [];
    this.at++;
    for (;;) {
      this.#space();
      if (this.#text[this.at] === ']') {
        this.at++;
        return array;
      }
      const value = this.value(depth + 1);
      if (value !== nothing) array.push(value);
      if (this.cut || this.broken) return array;
      if (!this.#comma(']')) return array;
    }
  }

  // Whether the walk continues: over a comma, or to the closing bracket, which the caller reads.
  #comma(close: string): boolean {
    this.#space();
    const next = this.#text[this.at];
    if (next === close) return true;
    if (next === ',') {
      this.at++;
      this.#space();
      // A bracket right behind a comma is not JSON.
      if (this.#text[this.at] !== close) return true;
    }
    if (next === undefined) this.cut = true;
    else this.broken = true;
    return false;
  }

  #string(): Read {
    const from = ++this.at;
    const end = this.#stringEnd();
    if (end !== undefined) {
      this.at = end + 1;
      try {
        return JSON.parse(this.#text.slice(from - 1, end + 1)) as string;
      } catch {
        return this.#break();
      }
    }
    const rest = this.#text.slice(from);
    this.at = this.#text.length;
    return this.#cutOff(unescapeOpen(rest));
  }

  #stringEnd(): number | undefined {
    for (let at = this.at; at < this.#text.length; at++) {
      const character = this.#text[at];
      if (character === '"') return at;
      if (character === '\\') at++;
    }
    return undefined;
  }

  #word(): Read {
    const rest = /[^\s,\]}]*/y;
    rest.lastIndex = this.at;
    const word = rest.exec(this.#text)?.[0] ?? '';
    const end = this.at + word.length;
    // At the end of the text `12` may become `123`, and `tru` may become `true`.
    if (end === this.#text.length && !isWord(word)) {
      this.at = end;
      return looksLikeValue(word) ? this.#cutOff() : this.#break();
    }
    try {
      const value = JSON.parse(word) as Json;
      this.at = end;
      return value;
    } catch {
      return this.#break();
    }
  }

  #space(): void {
    while (/\s/.test(this.#text[this.at] ?? '')) this.at++;
  }

  #cutOff(value: Read = nothing): Read {
    this.cut = true;
    return value;
  }

  #break(): Read {
    this.broken = true;
    return nothing;
  }
}

const isWord = (word: string): boolean => word === 'true' || word === 'false' || word === 'null';

function looksLikeValue(word: string): boolean {
  return (
    /^-?\d*(\.\d*)?([eE][+-]?\d*)?$/.test(word) ||
    ['true', 'false', 'null'].some((full) => full.startsWith(word))
  );
}

// The text of a string that is not closed yet, without an escape or a surrogate pair that is only half there.
function unescapeOpen(rest: string): string {
  let text = '';
  for (let at = 0; at < rest.length; at++) {
    const character = rest[at] ?? '';
    if (character !== '\\') {
      text += character;
      continue;
    }
    const kind = rest[++at];
    if (kind === undefined) break;
    if (kind !== 'u') {
      text += escapes[kind] ?? '';
      continue;
    }
    const digits = rest.slice(at + 1, at + 5);
    if (digits.length < 4) break;
    text += String.fromCharCode(Number.parseInt(digits, 16));
    at += 4;
  }
  const last = text.charCodeAt(text.length - 1);
  return last >= 0xd800 && last <= 0xdbff ? text.slice(0, -1) : text;
}
