import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { httpRoutes } from '../../src/server/a2a/http-routes.ts';
import { handler } from '../../src/server/index.ts';
import { createTestApp } from './kit.ts';

const app = createTestApp();
const fetch = handler(app, { a2a: true, agui: true });

test.each([
  ['/a2a', Object.keys(httpRoutes)],
  ['/agui', ['run', 'capabilities', 'connect', 'cancel']],
])('%s/openapi.json describes every route', async (path, names) => {
  const response = await fetch(new Request(`http://localhost${path}/openapi.json`));
  // biome-ignore lint/suspicious/noExplicitAny: a document
  const document = (await response.json()) as any;
  const operations = Object.values<object>(document.paths).flatMap((each) => Object.values(each));
  const ids = operations.map(({ operationId }) => operationId);
  expect(ids).toEqual(expect.arrayContaining(names));
  expect(new Set(ids).size).toBe(ids.length);
  const { valid, errors } = await new Validator().validate(document);
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
});
