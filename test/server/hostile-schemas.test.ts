import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/core/json/json.ts';
import { hostileRequests, someHostileSchemas } from '../support/hostile-schemas.ts';
import { post, startServer } from './kit.ts';

let server: Awaited<ReturnType<typeof startServer>>;
beforeAll(async () => {
  server = await startServer({ agui: true, openai: { allow: ['tools'] } });
});
afterAll(() => server.close());

describe('S660 a request with a schema of the caller is answered', () => {
  test.each(someHostileSchemas)('$name', async (hostile) => {
    for (const { way, path, body } of hostileRequests(hostile)) {
      const response = await post(`${server.url}${path}`, body, { authorization: 'Bearer ann' });
      const text = await response.text();
      expect([200, 400], `${way}: ${text.slice(0, 300)}`).toContain(response.status);
    }
    const { status } = await fetch(`${server.url}/healthz`);
    expect(status).toBe(200);
  });
});

describe('S661 a schema that is nested too deeply is refused before a turn starts', () => {
  const deep = JSON.parse(`${'{"not":'.repeat(140)}{}${'}'.repeat(140)}`);
  test.each(
    hostileRequests({ name: 'deep', schema: { type: 'object', not: deep }, value: {} }).map(
      (request) => [request.way, request] as const,
    ),
  )('%s', async (_, { path, body }) => {
    const response = await post(`${server.url}${path}`, body);
    expect(response.status).toBe(400);
    expect(await response.text()).toMatch(/nested|deep/);
  });
});

test('S660 a turn whose answer cannot be checked in time fails, and says so', async () => {
  const self = { $ref: '#/properties/v' };
  const schema = { type: 'object', properties: { v: { anyOf: [self, self] } } };
  const [format] = hostileRequests({ name: 'self', schema, value: { v: 1 } });
  const response = await post(`${server.url}${format?.path}`, format?.body);
  expect(await response.json()).toMatchObject({
    status: 'failed',
    error: { message: expect.stringMatching(/takes too many steps/) },
  });
});

test('S662 patterns and formats of a caller are not checked, the structure is', async () => {
  const v = { type: 'string', pattern: '^b', format: 'email' };
  const schema = { type: 'object', properties: { v }, required: ['v'] };
  const statusOf = async (value: object): Promise<string> => {
    const [format] = hostileRequests({ name: 'pattern', schema, value: value as JsonObject });
    const response = await post(`${server.url}${format?.path}`, format?.body);
    return ((await response.json()) as { status: string }).status;
  };
  expect(await statusOf({ v: 'a' })).toBe('completed');
  expect(await statusOf({ v: 1 })).toBe('failed');
  expect(await statusOf({})).toBe('failed');
});
