const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;

/** How much a JSON text may hold. */
export interface JsonBounds {
  /** Levels of arrays and objects. */
  readonly depth: number;
  /** Values: array items, properties, and the arrays and objects themselves. */
  readonly values: number;
}

/** Says which bound a JSON text exceeds. Reads the text only, so that nothing large is built before it is refused. */
export function exceededBound(text: string, bounds: JsonBounds): keyof JsonBounds | undefined {
  let depth = 0;
  let values = 1;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case quote:
        at = endOfString(text, at);
        break;
      case 0x5b: // [
      case 0x7b: // {
        if (++depth > bounds.depth) return 'depth';
        if (++values > bounds.values) return 'values';
        break;
      case 0x5d: // ]
      case 0x7d: // }
        depth--;
        break;
      case comma:
        if (++values > bounds.values) return 'values';
        break;
    }
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
      case 0x5b: // [
      case 0x7b: // {
        depth++;
        isKey = true;
        break;
      case 0x5d: // ]
      case 0x7d: // }
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
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(at - 1 - backslashes) === backslash) backslashes++;
  return backslashes % 2 === 1;
}
