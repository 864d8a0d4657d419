import { type Operation, routes } from '../../protocol/routes.ts';
import { jsonResponse } from '../http/answer.ts';
import { openApiPaths } from '../http/openapi.ts';
import type { Router } from '../http/server-context.ts';
import { agentOperations } from './agents.ts';
import { artifactOperations, fileOperations } from './artifacts.ts';
import { memoryOperations } from './memory.ts';
// Generated from the schemas in protocol/, and compared with them by a test: the server needs no generator.
import schemas from './openapi-schemas.json' with { type: 'json' };
import type { NativeOperation } from './operation.ts';
import { sessionOperations } from './sessions.ts';
import { turnOperations } from './turns.ts';

const operations: Readonly<Record<Operation, NativeOperation>> = {
  ...agentOperations,
  ...turnOperations,
  ...memoryOperations,
  ...sessionOperations,
  ...artifactOperations,
  ...fileOperations,
};

/** The native protocol: REST, and streams of server-sent events. */
export function mountNative(router: Router): void {
  for (const [key, { method, path }] of Object.entries(routes)) {
    const name = key as Operation;
    router.on(method, path, (c) => operations[name].respond(c, name));
  }
}

/** Paths and schemas that the document contains besides those of the native protocol. */
interface DescribedPaths {
  readonly paths: Readonly<Record<string, object>>;
  readonly schemas: Readonly<Record<string, object>>;
}

/** `GET /openapi.json`: the native protocol, and what every server has besides it, as an OpenAPI 3.1 document. */
export function mountOpenApi(router: Router, others: DescribedPaths): void {
  let document: object | undefined;
  router.get('/openapi.json', () => {
    document ??= openApiDocument(others);
    return jsonResponse(document, { headers: { 'cache-control': 'no-cache' } });
  });
}

export function openApiDocument(others: DescribedPaths): object {
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
    paths: { ...others.paths, ...openApiPaths(routes, operations) },
    components: {
      schemas: { ...schemas, ...others.schemas },
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } },
    },
  };
}
