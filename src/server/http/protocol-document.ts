/** A route of a protocol, as its OpenAPI document describes it. */
export interface DescribedRoute {
  readonly name: string;
  readonly method: string;
  /** With `:name` or `{name}` for parameters. */
  readonly path: string;
  readonly summary: string;
  /** Parameters of the query, with their type. */
  readonly query?: Readonly<Record<string, string>>;
  /** The names of schemas. */
  readonly body?: string | undefined;
  /** Absent: nothing, with the status 204. */
  readonly answer?: string;
  /** Whether it is answered by server-sent events: always, or if the client wants them. */
  readonly events?: 'always' | 'optional' | undefined;
}

/** What the document of a protocol says. */
export interface DescribedProtocol {
  readonly title: string;
  /** Where the paths begin. */
  readonly server: string;
  readonly routes: readonly DescribedRoute[];
  /** By name; `Error` is what refusals look like. */
  readonly schemas: Readonly<Record<string, object>> & { readonly Error: object };
}

/** Routes that another document contains, and their schemas. */
export interface DescribedPaths {
  readonly routes: readonly DescribedRoute[];
  readonly schemas: Readonly<Record<string, object>>;
}

/** The paths of routes, as OpenAPI 3.1. */
export function describePaths(
  routes: readonly DescribedRoute[],
): Record<string, Record<string, object>> {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const at = route.path.replace(/\/:(\w+)/g, '/{$1}');
    paths[at] = { ...paths[at], [route.method.toLowerCase()]: operation(route, at) };
  }
  return paths;
}

/** The routes of a protocol as an OpenAPI 3.1 document. */
export function protocolDocument({ title, server, routes, schemas }: DescribedProtocol): object {
  const paths = describePaths(routes);
  return {
    openapi: '3.1.0',
    info: { title, version: '1', license: { name: 'MIT', identifier: 'MIT' } },
    servers: [{ url: server }],
    security: [{}, { bearer: [] }],
    paths,
    components: { schemas, securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } },
  };
}

function operation(route: DescribedRoute, at: string): object {
  const { name, summary, query = {}, body, answer, events } = route;
  const inPath = [...at.matchAll(/\{(\w+)\}/g)].map(([, each = '']) => ({
    name: each,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const inQuery = Object.entries(query).map(([each, type]) => ({
    name: each,
    in: 'query',
    schema: { type },
  }));
  const parameters = [...inPath, ...inQuery];
  return {
    operationId: name,
    summary,
    ...(parameters.length > 0 && { parameters }),
    ...(body !== undefined && { requestBody: { required: true, content: json(body) } }),
    responses: {
      ...(answer === undefined
        ? { 204: { description: summary } }
        : {
            200: {
              description: summary,
              content: {
                ...(events !== 'always' && json(answer)),
                ...(events && { 'text/event-stream': { schema: { type: 'string' } } }),
              },
            },
          }),
      default: { description: 'An error.', content: json('Error') },
    },
  };
}

/** A reference to a schema of the document. */
export function schemaRef(name: string): object {
  return { $ref: `#/components/schemas/${name}` };
}

function json(schema: string): object {
  return { 'application/json': { schema: schemaRef(schema) } };
}
