import type { Json } from '../../core/json/json.ts';
import { type PartialJson, parsePartialJson } from './partial-json.ts';

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
