import { usageError, wholeNumber } from '../parse-arguments.ts';

/** Parses a port; `source` names where it comes from in the error. */
export function parsePort(text: string, command: string, source = '--port'): number {
  if (/^\d+$/.test(text.trim()) && Number(text) <= 65_535) return wholeNumber(text, 'port');
  throw usageError(`${source} takes a port from 0 to 65535, not "${text}".`, command);
}
