import { routes } from '../../protocol/routes.ts';
import { jsonResponse } from '../http/json-response.ts';
import { type DescribedPaths, describePaths } from '../http/protocol-document.ts';
import type { Router } from '../http/server-context.ts';
import { operations } from './openapi-operations.ts';
// Generated from the schemas in protocol/, and compared with them by a test: the server needs no generator.
import schemas from './openapi-schemas.json' with { type: 'json' };

/** `GET /openapi.json`: the native protocol, and what every server has besides it, as an OpenAPI 3.1 document. */
export function mountOpenApi(router: Router, others: DescribedPaths): void {
  let document: object | undefined;
  router.get('/openapi.json', () => {
    document ??= openApiDocument(others);
    return jsonResponse(document, { headers: { 'cache-control': 'no-cache' } });
  });
}

/** The document. */
export function openApiDocument(others: DescribedPaths): object {
  const paths = describePaths(others.routes);
  for (const [name, { method, path }] of Object.entries(routes)) {
    const at = path.replace(/:(\w+)/g, '{$1}');
    paths[at] = {
      ...paths[at],
      [method.toLowerCase()]: operation(name as keyof typeof routes, path),
    };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Waymark',
      version: '1',
      description: 'Agents, their sessions and their snapshots.',
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: [{}, { bearer: [] }],
    paths,
    components: {
      schemas: { ...schemas, ...others.schemas },
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
    },
  };
}

function operation(name: keyof typeof routes, path: string): object {
  const { summary, query = [], header = [], body, answer } = operations[name];
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, parameter = '']) => ({
    name: parameter,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const parameters = [
    ...inPath,
    ...query.map((parameter) => ({ in: 'query', ...parameter })),
    ...header.map((parameter) => ({ in: 'header', ...parameter })),
  ];
  return {
    operationId: name,
    summary,
    tags: [path.split('/')[3] ?? 'agents'],
    ...(parameters.length > 0 && { parameters }),
    ...(body && {
      requestBody: { required: body.required ?? true, content: json(body.schema) },
    }),
    responses: {
      ...answers(answer),
      default: { description: 'An error.', content: json('Error') },
    },
  };
}

function answers({ status = 200, ...answer }: (typeof operations)[string]['answer']): object {
  const { description, schema, events = false } = answer;
  const content = {
    ...(schema !== undefined && json(schema)),
    ...(events && { 'text/event-stream': { schema: { type: 'string' } } }),
  };
  const has = Object.keys(content).length > 0;
  return { [status]: { description, ...(has && { content }) } };
}

function json(schema: string): object {
  return { 'application/json': { schema: { $ref: `#/components/schemas/${schema}` } } };
}
