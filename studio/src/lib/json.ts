import type { WireTypes } from '../../../src/client/index.ts';

/** Any JSON value, as the client types it. */
export type Json = Exclude<WireTypes['custom'], undefined>;

export type JsonRecord = { readonly [key: string]: Json | undefined };

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value in one line, cut to a length. */
export function brief(value: unknown, most = 80): string {
  const text = typeof value === 'string' ? JSON.stringify(value) : spaced(value);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function spaced(value: unknown): string {
  if (Array.isArray(value)) return value.length === 0 ? '[]' : `[${value.map(spaced).join(', ')}]`;
  if (isRecord(value)) {
    const fields = Object.entries(value).map(([key, field]) => `${key}: ${spaced(field)}`);
    return fields.length === 0 ? '{}' : `{${fields.join(', ')}}`;
  }
  return value === undefined ? '–' : JSON.stringify(value);
}
