/** The tasks of bench/ergonomics: Waymark's files run, and the table is held to the files. */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createElement } from 'react';
import { renderToString } from 'react-dom/server';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { checkRow, measure, readErgonomics } from '../../scripts/docs/ergonomics.ts';

const root = resolve(import.meta.dirname, '../..');
const here = process.cwd();
const folder = mkdtempSync(join(tmpdir(), 'waymark-ergonomics-'));
// The tasks keep their sessions in a file beside them.
process.chdir(folder);
process.env.PORT = '0';
// A test itself: it runs with the others of this file.
await import('../../bench/ergonomics/tasks/16-test/waymark.ts');

const printed: unknown[][] = [];
beforeEach(() => {
  printed.length = 0;
  const print = (...values: unknown[]): void => void printed.push(values);
  vi.spyOn(console, 'log').mockImplementation(print);
  vi.spyOn(console, 'error').mockImplementation(print);
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => printed.push([text]) > 0);
});
afterEach(() => {
  vi.restoreAllMocks();
});
afterAll(async () => {
  const { app } = await import('../../bench/ergonomics/given/waymark.ts');
  await app.close();
  process.chdir(here);
  rmSync(folder, { recursive: true, force: true });
});

/** Every task with what it prints; those that build on it come later. */
const tasks: readonly (readonly [string, () => Promise<object>, unknown[][]])[] = [
  [
    '01-text-answer',
    () => import('../../bench/ergonomics/tasks/01-text-answer/waymark.ts'),
    [['See the river.']],
  ],
  [
    '02-stream-text',
    () => import('../../bench/ergonomics/tasks/02-stream-text/waymark.ts'),
    [['See the '], ['river.']],
  ],
  [
    '04-session-in-a-tool',
    () => import('../../bench/ergonomics/tasks/04-session-in-a-tool/waymark.ts'),
    [['1']],
  ],
  [
    '05-typed-state',
    () => import('../../bench/ergonomics/tasks/05-typed-state/waymark.ts'),
    [[['museums']]],
  ],
  [
    '06-ask-for-approval',
    () => import('../../bench/ergonomics/tasks/06-ask-for-approval/waymark.ts'),
    [['refund', { order: '7', amount: 40 }]],
  ],
  [
    '07-approve',
    () => import('../../bench/ergonomics/tasks/07-approve/waymark.ts'),
    [['Refunded 40']],
  ],
  [
    '08-edit-after-restart',
    () => import('../../bench/ergonomics/tasks/08-edit-after-restart/waymark.ts'),
    [['Refunded 20']],
  ],
  [
    '09-structured-output',
    () => import('../../bench/ergonomics/tasks/09-structured-output/waymark.ts'),
    [['Oslo', 3]],
  ],
  [
    '10-background-run',
    () => import('../../bench/ergonomics/tasks/10-background-run/waymark.ts'),
    [['See the river.']],
  ],
  [
    '11-restore-fork-diff',
    () => import('../../bench/ergonomics/tasks/11-restore-fork-diff/waymark.ts'),
    [
      [
        expect.objectContaining({
          messages: expect.objectContaining({ added: expect.any(Array) }),
        }),
      ],
    ],
  ],
  [
    '12-sub-agent',
    () => import('../../bench/ergonomics/tasks/12-sub-agent/waymark.ts'),
    [['See the river.']],
  ],
  [
    '13-failed-turn',
    () => import('../../bench/ergonomics/tasks/13-failed-turn/waymark.ts'),
    [['Model "scripted" failed: The model is overloaded.', expect.any(Error)]],
  ],
];

describe('the files of Waymark run', () => {
  test.each(tasks)('%s', async (_, run, prints) => {
    await run();
    // The first import also runs the tasks that it builds on; a failed turn is printed by the app, too.
    expect(printed.slice(-prints.length)).toEqual(prints);
  });

  test('14-server-with-auth and 15-react-page', async () => {
    const { server } = await import('../../bench/ergonomics/tasks/14-server-with-auth/waymark.ts');
    const { Page } = await import('../../bench/ergonomics/tasks/15-react-page/waymark.tsx');
    const { url } = server;
    const headers = { authorization: 'Bearer token-of-ada' };
    expect((await fetch(`${url}/agents`)).status).toBe(401);
    expect((await fetch(`${url}/agents`, { headers })).status).toBe(200);
    expect(renderToString(createElement(Page, { url }))).toContain('aria-label="Message"');
    await server.close();
  });

  test('and none is left out', () => {
    const run = [...tasks.map(([name]) => name), '14-server-with-auth', '15-react-page', '16-test'];
    // The test of 16 runs the agent of 03.
    expect([...run, '03-tool'].sort()).toEqual(
      readdirSync(join(root, 'bench/ergonomics/tasks')).sort(),
    );
  });
});

test('the table has every task of the folder, with its size', () => {
  const { rows } = readErgonomics(root);
  expect(rows.map(({ task }) => task.id)).toEqual(
    readdirSync(join(root, 'bench/ergonomics/tasks')).sort(),
  );
});

test('comments, blank lines, indentation and everything outside the regions do not count', () => {
  const source = [
    "import { a } from 'a';",
    '// #region task',
    'const b = a({',
    '',
    '  // why',
    '  c: 1,',
    '});',
    '// #endregion',
    'const given = b;',
    '  // #region task',
    '  given();',
    '  // #endregion',
  ].join('\n');
  expect(measure(source, 'tasks/x/waymark.ts')).toEqual({ lines: 4, characters: 29 });
  expect(() => measure('const a = 1;', 'tasks/x/waymark.ts')).toThrow('has no region "task"');
});

test('a row without code or reason, and a long one without an explanation, is refused', () => {
  const size = (lines: number) => ({ lines, characters: lines * 10 });
  const check = (sizes: Record<string, { lines: number; characters: number }>, more: object = {}) =>
    checkRow({ task: { id: 'x', name: 'x', about: 'x', ...more }, sizes }, ['waymark', 'other']);
  expect(() => check({ waymark: size(6), other: size(5) })).not.toThrow();
  expect(() => check({ waymark: size(7), other: size(5) })).toThrow('more than 20 % longer');
  expect(() => check({ waymark: size(7), other: size(5) }, { longer: 'why' })).not.toThrow();
  expect(() => check({ waymark: size(6), other: size(5) }, { longer: 'why' })).toThrow('is not');
  expect(() => check({ waymark: size(6) })).toThrow('There is no code for "x" in other');
  const notOffered = { other: { text: 'none', source: 'page' } };
  expect(() => check({ waymark: size(6) }, { notOffered })).not.toThrow();
  expect(() => check({ waymark: size(6), other: size(9) }, { notOffered })).toThrow(
    'there is code',
  );
});
