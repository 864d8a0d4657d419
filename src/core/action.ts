import { Channel } from './async/channel.ts';
import { throwIfAborted } from './async/signal.ts';
import type { JsonObject } from './json/json.ts';
import {
  type InferSchema,
  type InferSchemaInput,
  type JsonSchema,
  parse,
  type Schema,
  toJsonSchema,
} from './schema/schema.ts';

/** The context that the caller of an action passes along: the authenticated user, and whatever an app adds. */
export type ActionContext = Readonly<Record<string, unknown>>;

/** An action as data, for tools that list and call actions. */
interface ActionDescriptor {
  /** Identifies it in the registry: kind and name. */
  readonly key: string;
  /** The name. */
  readonly name: string;
  /** The purpose, in one sentence. */
  readonly description?: string;
  /** JSON Schema of the input. */
  readonly inputSchema?: JsonSchema;
  /** JSON Schema of the output. */
  readonly outputSchema?: JsonSchema;
  /** JSON Schema of the streamed chunks. */
  readonly streamSchema?: JsonSchema;
  /** More about it, by kind. */
  readonly metadata?: JsonObject;
}

/** How an action is declared; schemas that are left out let everything through. */
export interface ActionOptions<
  Input extends Schema | undefined = undefined,
  Output extends Schema | undefined = undefined,
  Chunk extends Schema | undefined = undefined,
> {
  /** Where it is registered, such as `/tool/weather`. */
  readonly key: string;
  readonly name: string;
  readonly description?: string | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly input?: Input;
  readonly output?: Output;
  readonly stream?: Chunk;
}

/** The second argument of an action's function. */
export interface ActionCall<Chunk = unknown> {
  readonly signal: AbortSignal;
  readonly context: ActionContext;
  /** Hands a chunk to the caller, if it listens; resolves when there is room for the next one. */
  send(chunk: Chunk): Promise<void>;
}

interface RunOptions<Chunk = unknown> {
  readonly signal?: AbortSignal | undefined;
  readonly context?: ActionContext | undefined;
  readonly onChunk?: ((chunk: Chunk) => void | Promise<void>) | undefined;
}

/** A function with a key, a validated input and an output, which may stream. */
export interface Action<Input = unknown, Output = unknown, Chunk = unknown> {
  /** Identifies it in the registry: kind and name. */
  readonly key: string;
  /** The name. */
  readonly name: string;
  /** The action as data, for tools that list actions. */
  readonly descriptor: ActionDescriptor;
  /** Checks the input and runs the action. */
  run(input: Input, options?: RunOptions<Chunk>): Promise<Output>;
  /** Runs the action and gives its chunks as they come; it does not wait for them to be read, as `onChunk` lets it. */
  stream(
    input: Input,
    options?: Omit<RunOptions<Chunk>, 'onChunk'>,
  ): { readonly stream: AsyncIterable<Chunk>; readonly output: Promise<Output> };
}

type Given<S> = S extends Schema ? InferSchemaInput<S> : unknown;
type Parsed<S> = S extends Schema ? InferSchema<S> : unknown;

/** Declares an action; a schema that cannot be described as JSON Schema is refused here. */
export function defineAction<
  Input extends Schema | undefined = undefined,
  Output extends Schema | undefined = undefined,
  Chunk extends Schema | undefined = undefined,
  Result extends Parsed<Output> = Parsed<Output>,
>(
  options: ActionOptions<Input, Output, Chunk>,
  fn: (input: Parsed<Input>, call: ActionCall<Parsed<Chunk>>) => Result | Promise<Result>,
): Action<Given<Input>, Result, Parsed<Chunk>> {
  type Ours = Action<Given<Input>, Result, Parsed<Chunk>>;
  const { key, name } = options;

  const run: Ours['run'] = async (input, { signal: given, context = {}, onChunk } = {}) => {
    const signal = given ?? new AbortController().signal;
    throwIfAborted(signal);
    const parsed = options.input ? await parse(options.input, input, `The input of ${key}`) : input;
    const call: ActionCall<Parsed<Chunk>> = {
      signal,
      context,
      send: async (chunk) => onChunk?.(chunk),
    };
    const result = await fn(parsed as Parsed<Input>, call);
    return (
      options.output ? await parse(options.output, result, `The output of ${key}`) : result
    ) as Result;
  };

  const stream: Ours['stream'] = (input, runOptions = {}) => {
    // Unbounded: a caller may wait for the output without reading the chunks.
    const chunks = new Channel<Parsed<Chunk>>();
    const output = run(input, { ...runOptions, onChunk: (chunk) => chunks.push(chunk) });
    output.then(
      () => chunks.close(),
      (error: unknown) => chunks.fail(error),
    );
    return { stream: chunks, output };
  };

  return { key, name, descriptor: describe(options), run, stream };
}

function describe({
  key,
  name,
  description,
  metadata,
  input,
  output,
  stream,
}: ActionOptions<Schema | undefined, Schema | undefined, Schema | undefined>): ActionDescriptor {
  return {
    key,
    name,
    ...(description !== undefined && { description }),
    ...(input && { inputSchema: toJsonSchema(input, 'input') }),
    ...(output && { outputSchema: toJsonSchema(output, 'output') }),
    ...(stream && { streamSchema: toJsonSchema(stream, 'output') }),
    ...(metadata && { metadata }),
  };
}
