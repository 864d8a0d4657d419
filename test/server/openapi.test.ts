import { writeFile } from 'node:fs/promises';
import { Validator } from '@seriousme/openapi-schema-validator';
import { expect, test } from 'vitest';
import { routes } from '../../src/protocol/routes.ts';
import { openApiDocument } from '../../src/server/native/mount.ts';
import schemas from '../../src/server/native/openapi-schemas.json' with { type: 'json' };
import { uiPaths } from '../../src/server/ui-stream/shapes.ts';
import { generateSchemas } from './openapi-schemas.ts';

const file = new URL('../../src/server/native/openapi-schemas.json', import.meta.url);

test('the schemas in the document are those of the protocol', async () => {
  const generated = generateSchemas();
  // Run with WAYMARK_GENERATE=1 after a change of protocol/, and format the file.
  if (process.env.WAYMARK_GENERATE) await writeFile(file, JSON.stringify(generated, null, 2));
  expect(schemas).toEqual(generated);
});

test('every route is in the document, and every reference leads somewhere', () => {
  const document = JSON.parse(JSON.stringify(openApiDocument(uiPaths)));
  for (const [name, { method, path }] of Object.entries(routes)) {
    const at = path.replace(/:(\w+)/g, '{$1}');
    expect(document.paths[at][method.toLowerCase()].operationId).toBe(name);
  }
  const references = [...JSON.stringify(document).matchAll(/"#\/components\/schemas\/(\w+)"/g)];
  expect(references.length).toBeGreaterThan(20);
  for (const [, name] of references)
    expect(document.components.schemas).toHaveProperty([name ?? '']);
});

test('S726 the routes for useChat are in the document', () => {
  const { paths } = JSON.parse(JSON.stringify(openApiDocument(uiPaths)));
  const found = Object.entries(paths).flatMap(([path, methods]) =>
    path.startsWith('/ui/') ? Object.keys(methods as object).map((each) => `${each} ${path}`) : [],
  );
  expect(found).toEqual([
    'post /ui/{agent}',
    'get /ui/{agent}/{chat}/stream',
    'post /ui/{agent}/{chat}/stop',
    'get /ui/{agent}/{chat}/messages',
  ]);
});

test('a validator that nobody here wrote finds nothing wrong with it', async () => {
  const { valid, errors } = await new Validator().validate({ ...openApiDocument(uiPaths) });
  expect(errors).toBeUndefined();
  expect(valid).toBe(true);
});
