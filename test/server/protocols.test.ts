import { describe, expect, test } from 'vitest';
import { handler as smallHandler } from '../../src/server/fetch-only.ts';
import {
  a2aProtocol,
  aguiProtocol,
  handler,
  mcpProtocol,
  openAiProtocol,
  type ServerProtocol,
} from '../../src/server/index.ts';
import { createTestApp } from './kit.ts';

const paths = {
  mcp: '/mcp',
  a2a: '/.well-known/agent-card.json',
  openai: '/openai/v1/models',
  agui: '/agui/chat',
};
const protocols = (): ServerProtocol[] => [
  mcpProtocol(),
  a2aProtocol(),
  openAiProtocol(),
  aguiProtocol(),
];
const auth = () => ({ principal: 'ann' });

describe.each([
  ['on Node', handler],
  ['on Workers and edge runtimes', smallHandler],
])('protocols as objects %s', (_, create) => {
  test('are offered (S505)', async () => {
    const fetch = create(createTestApp(), { auth, protocols: protocols() });
    for (const [name, path] of Object.entries(paths)) {
      const { status } = await fetch(new Request(`http://localhost${path}`));
      // MCP is there, and has nothing to read.
      expect(status, name).toBe(name === 'mcp' ? 405 : 200);
    }
  });

  test('are absent unless they are given', async () => {
    const fetch = create(createTestApp(), { auth });
    for (const path of Object.values(paths)) {
      expect((await fetch(new Request(`http://localhost${path}`))).status, path).toBe(404);
    }
  });

  test('may not be given twice, nor be something else', () => {
    const twice = { auth, protocols: [mcpProtocol(), mcpProtocol()] };
    expect(() => create(createTestApp(), twice)).toThrow('The protocol "mcp" is given twice.');
    const other = { auth, protocols: [{ name: 'mcp' } as const] };
    expect(() => create(createTestApp(), other)).toThrow('mcpProtocol()');
  });
});

test('a protocol is an option or an object, not both', () => {
  const both = { auth, mcp: true, protocols: [mcpProtocol()] };
  expect(() => handler(createTestApp(), both)).toThrow('The protocol "mcp" is given twice.');
});

test.each(Object.keys(paths))(
  '%s as an option is refused where it would grow the bundle',
  (name) => {
    expect(() => smallHandler(createTestApp(), { auth, [name]: true })).toThrow(
      /Import \w+Protocol from waymark\/server/,
    );
  },
);
