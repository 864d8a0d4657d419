import { defined } from '../../core/json/json.ts';

export interface Parameter {
  readonly description?: string | undefined;
  readonly schema: object;
}

/** An operation as the OpenAPI document describes it. Schemas have names. */
export interface Described {
  readonly summary: string;
  readonly query?: Readonly<Record<string, Parameter>> | undefined;
  readonly header?: Readonly<Record<string, Parameter>> | undefined;
  readonly body?: { readonly schema: string; readonly required?: boolean } | undefined;
  readonly answer: {
    readonly status?: number;
    readonly description: string;
    readonly schema?: string;
    /** Whether the client can have it as server-sent events. */
    readonly events?: boolean;
  };
}

/** The paths of routes with their operations, as OpenAPI 3.1. */
export function openApiPaths(
  routes: Readonly<Record<string, { readonly method: string; readonly path: string }>>,
  described: Readonly<Record<string, Described>>,
): Record<string, Record<string, object>> {
  const paths: Record<string, Record<string, object>> = {};
  for (const [name, { method, path }] of Object.entries(routes)) {
    const info = described[name];
    if (info === undefined) continue;
    const at = path.replace(/:(\w+)/g, '{$1}');
    paths[at] = { ...paths[at], [method.toLowerCase()]: operation(name, path, info) };
  }
  return paths;
}

function operation(name: string, path: string, info: Described): object {
  const { summary, query = {}, header = {}, body, answer } = info;
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, parameter = '']) => ({
    name: parameter,
    in: 'path',
    required: true,
    schema: { type: 'string' },
  }));
  const parameters = [...inPath, ...listed('query', query), ...listed('header', header)];
  const [, first, , kind] = path.split('/');
  return {
    operationId: name,
    summary,
    tags: [(first === 'ui' ? first : kind) ?? 'agents'],
    ...defined({
      parameters: parameters.length > 0 ? parameters : undefined,
      requestBody: body && { required: body.required ?? true, content: json(body.schema) },
    }),
    responses: {
      ...answers(answer),
      default: { description: 'An error.', content: json('Error') },
    },
  };
}

function listed(place: 'query' | 'header', parameters: NonNullable<Described['query']>): object[] {
  return Object.entries(parameters).map(([name, { description, schema }]) =>
    defined({ in: place, name, description, schema }),
  );
}

function answers({ status = 200, ...answer }: Described['answer']): object {
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
