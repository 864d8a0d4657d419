import { WaymarkError } from '../core/error.ts';
import type { Message, Part } from '../protocol/message.ts';
import { type Content, toParts } from './template.ts';

/** How a resource is declared. */
interface ResourceOptions {
  /** The name, unique in the app. */
  readonly name: string;
  /** The URI, or a URI template: `file:///docs/{name}`. */
  readonly uri: string;
  /** The content of the resource, in one sentence. */
  readonly description?: string;
}

/** The request to the reader of a resource. */
interface ResourceRequest {
  /** The address that was asked for. */
  readonly uri: string;
  /** The values of the template's placeholders. */
  readonly params: Readonly<Record<string, string>>;
  /** Aborts when the turn is stopped. */
  readonly signal: AbortSignal;
}

/** Content that messages refer to by its URI, and that is read when a model is to see it. */
export interface Resource extends ResourceOptions {
  /** The placeholders' values if the resource answers to this URI. */
  match(uri: string): Readonly<Record<string, string>> | undefined;
  /** Reads the content. */
  read(request: ResourceRequest): Promise<Content>;
}

/** How a resource is named where one is wanted: by a registered name, or the resource itself. */
export type ResourceRef = string | Resource;

/**
 * Creates a resource from a function.
 *
 * @example
 * const page = resource({ name: 'page', uri: 'docs://{name}' }, async ({ params }) => await read(params.name));
 */
export function resource(
  options: ResourceOptions,
  read: (request: ResourceRequest) => Content | Promise<Content>,
): Resource {
  const pattern = toPattern(options.uri);
  return {
    ...options,
    match(uri) {
      const groups = pattern.exec(uri)?.groups;
      return groups ?? (uri === options.uri ? {} : undefined);
    },
    read: async (request) => read(request),
  };
}

/** Messages with the content of resources in the place of the parts that name them. */
export async function withResources(
  messages: readonly Message[],
  resources: readonly Resource[],
  signal: AbortSignal,
): Promise<readonly Message[]> {
  return Promise.all(
    messages.map(async (message) => {
      if (!message.content.some((part) => 'resource' in part)) return message;
      const content = await Promise.all(
        message.content.map((part) => readPart(part, resources, signal)),
      );
      return { ...message, content: content.flat() };
    }),
  );
}

async function readPart(
  part: Part,
  resources: readonly Resource[],
  signal: AbortSignal,
): Promise<readonly Part[]> {
  if (!('resource' in part)) return [part];
  const { uri } = part.resource;
  for (const candidate of resources) {
    const params = candidate.match(uri);
    if (params) return toParts(await candidate.read({ uri, params, signal }));
  }
  const known = resources.map((candidate) => candidate.uri).join(', ');
  throw new WaymarkError('NOT_FOUND', `No resource matches "${uri}"; there is ${known}.`);
}

function toPattern(template: string): RegExp {
  const source = template
    .split(/(\{\w+\})/)
    .map((piece) =>
      /^\{\w+\}$/.test(piece)
        ? `(?<${piece.slice(1, -1)}>[^/?#]+)`
        : piece.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'),
    )
    .join('');
  return new RegExp(`^${source}$`);
}
