import { hashNote } from './frozen-json.ts';

/** About how many characters a value has as JSON; stops counting once it is over `most`. Exact for what was hashed. */
export function jsonLength(value: unknown, most: number): number {
  if (typeof value === 'string') return value.length + 2;
  if (typeof value !== 'object' || value === null) return 5;
  const known = hashNote(value);
  if (known !== undefined) return known.length;
  let length = 2;
  for (const key in value) {
    const item = value[key as keyof typeof value];
    length += (Array.isArray(value) ? 1 : key.length + 4) + jsonLength(item, most - length);
    if (length > most) return length;
  }
  return length;
}
