import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { bundleForBrowser } from '../browser/support/bundle-page.ts';

const entries = {
  client: {
    entry: new URL('../../src/client/index.ts', import.meta.url),
    external: [],
    // 9,200 before the everyday calls: answers to interrupts, run handles, outputs that read themselves, TurnError, options that
    // are checked. 12,000 before tools that the caller executes, pages of messages,
    // usage, summaries and the list of sessions that wait. 13,600 before answers to what waits inside sub-agents.
    // 14,000 before errors that say what answers in place of a server, whose stacks contain the caller, and edits of artifacts.
    // 14,600 before plans of undo, files of workspaces, skills and memory in the calls of an agent.
    most: 15_400,
  },
  react: {
    entry: new URL('../../src/react/index.ts', import.meta.url),
    external: ['react'],
    // 17,000 and 19,400 before them; the client is part of it. 22,600 before takeovers that name what no longer stands.
    // 23,600 before the client's calls for undo, workspaces, skills and memory.
    most: 24_000,
  },
};

test.each(Object.entries(entries))(
  'waymark/%s is one small bundle for a browser',
  async (name, options) => {
    const { entry, external, most } = options;
    const { code, imports, modules } = await bundleForBrowser(entry, { external });
    const size = gzipSync(code, { level: 9 }).length;
    console.info(`waymark/${name}: ${code.length} bytes minified, ${size} gzipped`);
    expect(imports).toEqual(external);
    // No package comes along: not one module outside of our own sources.
    expect(modules.filter((id) => id.includes('node_modules'))).toEqual([]);
    expect(code).not.toMatch(/(?:from|import\(|require\()\s*["']node:/);
    expect(size).toBeLessThan(most);
  },
);
