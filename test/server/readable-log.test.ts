import { expect, test } from 'vitest';
import { jsonLines, readableLines } from '../../src/server/http/log.ts';

test('S389 the log of a server is readable on a terminal, and JSON elsewhere', () => {
  const lines: string[] = [];
  const time = Date.UTC(2026, 10, 16, 8, 9, 10);
  const entry = {
    level: 'warn',
    time,
    msg: 'request',
    method: 'GET',
    path: '/a\u001b[2J',
    ms: 3,
  } as const;
  readableLines((line) => void lines.push(line))(entry);
  jsonLines((line) => void lines.push(line))(entry);
  expect(lines[0]).toBe('08:09:10 warn request method=GET path="/a\\u001b[2J" ms=3\n');
  expect(JSON.parse(lines[1] ?? '')).toEqual(entry);
});
