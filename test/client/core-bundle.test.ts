import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { bundleForBrowser } from '../browser/support/bundle-page.ts';

const entry = (path: string): URL => new URL(`../../src/${path}/index.ts`, import.meta.url);
const optional = [
  '@modelcontextprotocol/client',
  '@modelcontextprotocol/client/stdio',
  '@opentelemetry/api',
];

test('waymark loads nothing of a protocol', async () => {
  const { code, modules } = await bundleForBrowser(entry('.'), { external: optional, split: true });
  const ours = modules.filter((id) => id.includes('/src/') && !id.includes('node_modules'));
  const size = gzipSync(code, { level: 9 }).length;
  console.info(`waymark: ${ours.length} modules, ${code.length} bytes minified, ${size} gzipped`);
  expect(ours.filter((id) => /\/src\/(mcp|a2a|server|client|react|cli)\//.test(id))).toEqual([]);
  expect(
    modules.filter((id) => /node_modules\/(@modelcontextprotocol|hono|@hono)\//.test(id)),
  ).toEqual([]);
  // 208,229 now; with the template engine, which is loaded only for prompt files. Files that are stored apart from the state take 3,900.
  // 210,000 before schemas were evaluated in limited steps, definitions explained more mistakes and named the models of providers,
  // and stacks contained the caller. 220,400 with reservations of budgets one write that accepts a run, and edits of artifacts.
  // 229,500 with workspaces, 238,000 with memory across sessions and 244,000 with undo and crash tests; 262,300 with what is loaded
  // only when it is used: 9,300 for cron schedules, and 6,000 for skills.
  expect(size).toBeLessThan(264_000);
});
