const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const openArray = 0x5b;
const closeArray = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

/** How much a JSON text may hold. */
export interface JsonBounds {
  /** Levels of arrays and objects. */
  readonly depth: number;
  /** Values: array items, properties, and the arrays and objects themselves. */
  readonly values: number;
}

/** The longest number or gap: no writer of JSON makes one, and reading millions of digits takes a tenth of a second. */
const longestToken = 10_000;

/** Says which bound a JSON text exceeds. Reads the text only, so that nothing large is built before it is refused. */
export function exceededBound(
  text: string,
  bounds: JsonBounds,
): keyof JsonBounds | 'token' | undefined {
  let depth = 0;
  let values = 1;
  let tokenAt = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) {
      at = endOfString(text, at);
    } else if (code === comma) {
      if (++values > bounds.values) return 'values';
    } else if (code === openArray || code === openObject) {
      if (++depth > bounds.depth) return 'depth';
      if (++values > bounds.values) return 'values';
    } else if (code === closeArray || code === closeObject) {
      depth--;
    } else {
      if (at - tokenAt > longestToken) return 'token';
      continue;
    }
    tokenAt = at + 1;
  }
  return undefined;
}

/**
 * The string at a key of the outermost object, without parsing the rest; as for `JSON.parse`, the last one counts.
 * `undefined` when there is none, or the text is no JSON.
 */
export function topLevelString(text: string, key: string): string | undefined {
  let depth = 0;
  let found: string | undefined;
  // Where a key may begin: behind the opening bracket, or behind a comma.
  let isKey = false;
  let isWanted = false;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote: {
        const end = endOfString(text, at);
        if (depth === 1 && isKey) isWanted = isString(text.slice(at, end + 1), key);
        else if (depth === 1 && isWanted) found = parseString(text.slice(at, end + 1));
        isKey = false;
        at = end;
        break;
      }
      case openArray:
      case openObject:
        depth++;
        isKey = true;
        break;
      case closeArray:
      case closeObject:
        depth--;
        break;
      case comma:
        isKey = true;
        isWanted = false;
        break;
    }
  }
  return found;
}

// Each character may be written as an escape of six.
function isString(json: string, wanted: string): boolean {
  return json.length <= wanted.length * 6 + 2 && parseString(json) === wanted;
}

function parseString(json: string): string | undefined {
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

// The index of the closing quote; the parser refuses a string that never ends.
function endOfString(text: string, start: number): number {
  const end = text.indexOf('"', start + 1);
  if (end === -1) return text.length;
  return text.charCodeAt(end - 1) === backslash ? endOfEscaped(text, start) : end;
}

// A string with escapes is read character by character: a search for each quote would take many times as long.
function endOfEscaped(text: string, start: number): number {
  for (let at = start + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === quote) return at;
    if (code === backslash) at++;
  }
  return text.length;
}
