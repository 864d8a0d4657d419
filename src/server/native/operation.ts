import type { InferOutput, ObjectEntries, ObjectSchema } from 'valibot';
import type { CallOptions } from '../../agent/contract/agent.ts';
import { invalid } from '../../core/error.ts';
import { defined, type Json } from '../../core/json/json.ts';
import { checkMessagePage, type MessageOptions } from '../../protocol/message-page.ts';
import type { Operation } from '../../protocol/routes.ts';
import { jsonResponse, readLimit, short } from '../http/answer.ts';
import { readBody } from '../http/body.ts';
import type { Described, Parameter } from '../http/openapi.ts';
import {
  type OpenCall,
  openCall,
  type RequestContext,
  type Subject,
} from '../http/server-context.ts';
import { checkFields } from './known-fields.ts';

/** An operation of the native protocol: its description, and its answer to a caller that is authenticated. */
export interface NativeOperation extends Described {
  respond(c: RequestContext, name: Operation): Promise<Response>;
}

/** A parameter of the query, and its value; `undefined` is not passed on. */
export interface QueryParameter<Value> extends Parameter {
  read(text: string | undefined, name: string): Value;
}

type Query = Readonly<Record<string, QueryParameter<unknown>>>;
type Values<Q extends Query> = {
  readonly [Name in keyof Q]?: NonNullable<ReturnType<Q[Name]['read']>>;
};
// biome-ignore lint/suspicious/noExplicitAny: any entries and message
type Shape = ObjectSchema<ObjectEntries, any>;

/** A body as it was sent: JSON has no fields without a value. */
type Sent<Body> = { readonly [Field in keyof Body]: Exclude<Body[Field], undefined> };

/** A call that was authorized. */
interface Call<Body, Q extends Query> extends Omit<OpenCall, 'options'> {
  readonly c: RequestContext;
  readonly sessionId: string;
  readonly snapshotId: string;
  readonly body: Body;
  /** The options of every call, with the parameters of the query; those of a page of messages as its option. */
  readonly options: CallOptions & MessageOptions & Omit<Values<Q>, keyof typeof messagePage>;
}

interface Definition<Body extends Shape, Q extends Query> extends Omit<Described, 'body'> {
  readonly query?: Q;
  readonly body?: {
    readonly shape: Body;
    /** The name of its schema. */
    readonly schema: string;
    /** With its article, for errors: `a fork`. */
    readonly what: string;
    /** @default true */
    readonly required?: boolean;
    /** Refuses what its shape ignores. @default refuses unknown fields */
    readonly check?: (value: Json) => void;
  };
  /** The session or snapshot that the call is about, besides those of its path. */
  subject?(c: RequestContext, body: InferOutput<Body>): Subject;
  /** The answer; `undefined` is 204. */
  run(call: Call<Sent<InferOutput<Body>>, Q>): Promise<object | undefined>;
}

/** An operation of one agent that answers with JSON. Reads the body, asks `authorize`, then reads the query. */
export function operation<Body extends Shape, Q extends Query = Readonly<Record<never, never>>>(
  definition: Definition<Body, Q>,
): NativeOperation {
  const { body: expected, subject, run, ...described } = definition;
  return {
    ...described,
    body: expected,
    async respond(c, name) {
      const { session, snapshot } = c.req.param() as Partial<Record<string, string>>;
      const body = expected && (await bodyOf(c, expected));
      const call = await openCall(c, name, {
        sessionId: session,
        snapshotId: snapshot,
        ...subject?.(c, body as InferOutput<Body>),
      });
      const { last, before, ...query }: Values<typeof messagePage> = readQuery(c, definition.query);
      const answer = await run({
        ...call,
        c,
        sessionId: session ?? '',
        snapshotId: snapshot ?? '',
        body: body as Sent<InferOutput<Body>>,
        options: { ...call.options, ...(query as Values<Q>), ...messagesOf(last, before) },
      });
      return answer === undefined ? new Response(null, { status: 204 }) : jsonResponse(answer);
    },
  };
}

async function bodyOf<Body extends Shape>(
  c: RequestContext,
  { shape, what, check }: NonNullable<Definition<Body, Query>['body']>,
): Promise<InferOutput<Body>> {
  const checkKnown = (value: Json): void => checkFields(value, shape, what);
  return await readBody(c, shape, what.replace(/^an? /, ''), check ?? checkKnown);
}

/** The parameters of a query that have a value. */
export function readQuery<Q extends Query>(c: RequestContext, query: Q | undefined): Values<Q> {
  const values = Object.entries(query ?? {}).flatMap(([name, { read }]) => {
    const value = read(c.req.query(name), name);
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(values) as Values<Q>;
}

export function text(
  description?: string,
  schema: object = { type: 'string' },
): QueryParameter<string | undefined> {
  return { description, schema, read: (given) => given };
}

/** A flag of the query: there, `true` or `1` is yes; absent, `false` or `0` is no. */
export function flag(description?: string, more: object = {}): QueryParameter<boolean> {
  return { description, schema: { type: 'boolean', ...more }, read: readFlag };
}

function readFlag(value: string | undefined, name: string): boolean {
  switch (value) {
    case undefined:
    case 'false':
    case '0':
      return false;
    case '':
    case 'true':
    case '1':
      return true;
    default:
      throw invalid(`${name} must be true or false, not ${short(value)}.`);
  }
}

/** The longest page that can be asked for. */
const maxItems = 200;

const limit: QueryParameter<number | undefined> = {
  schema: { type: 'integer', minimum: 1, maximum: maxItems, default: 50 },
  read: (given) => readLimit(given, maxItems),
};

/** `limit` and `cursor` of a list. */
export const page = { limit, cursor: text('`next` of the page before.') };

/** The same of a list that is whole without a limit. */
export const runPage = {
  ...page,
  limit: {
    ...limit,
    description: 'Absent: all.',
    schema: { type: 'integer', minimum: 1, maximum: maxItems },
  },
};

// Anything but digits is no number that a page could have; the check says what it should be.
function position(description: string, range: object): QueryParameter<number | undefined> {
  return {
    description,
    schema: { type: 'integer', ...range },
    read(given) {
      if (given === undefined) return undefined;
      return /^\d{1,15}$/.test(given) ? Number(given) : Number.NaN;
    },
  };
}

/** `last` and `before` of a page of messages. */
export const messagePage = {
  last: position('Reads only the last messages; `messageRange` says which they are.', {
    minimum: 1,
    maximum: 1000,
  }),
  before: position(
    'Reads only messages before this position: `messageRange.from` of the page after.',
    { minimum: 0 },
  ),
};

/** How many messages a page has when only `before` is given. */
const usualPage = 50;

/** The option of a read that asks for a page of messages. */
function messagesOf(last: number | undefined, before: number | undefined): MessageOptions {
  if (last === undefined && before === undefined) return {};
  const messages = { last: last ?? usualPage, ...defined({ before }) };
  checkMessagePage(messages);
  return { messages };
}
