import {
  type ActionContext,
  type ActionDescriptor,
  type ActionOptions,
  describe,
} from './action.ts';
import { handled } from './async/handled.ts';
import {
  type Connection,
  type ConnectionIo,
  type ConnectionOptions,
  createConnection,
} from './bidi.ts';
import { type InferSchema, type InferSchemaInput, parse, type Schema } from './schema/schema.ts';

/** A bidirectional action: many inputs, many chunks and one output over one connection that starts with an init. */
export interface BidiAction<Init = unknown, In = unknown, Out = unknown, Chunk = unknown> {
  readonly key: string;
  readonly name: string;
  readonly descriptor: ActionDescriptor;
  /** Opens a connection; an init that does not fit rejects its output. */
  connect(init: Init, options?: ConnectOptions): Connection<In, Out, Chunk>;
}

/** How a bidirectional action is called. */
interface ConnectOptions extends Omit<ConnectionOptions, 'init'> {
  readonly context?: ActionContext | undefined;
}

type Given<S> = S extends Schema ? InferSchemaInput<S> : unknown;
type Parsed<S> = S extends Schema ? InferSchema<S> : unknown;

/** Declares a bidirectional action; its init, inputs and output are checked at the door. */
export function defineBidiAction<
  Init extends Schema | undefined = undefined,
  Input extends Schema | undefined = undefined,
  Output extends Schema | undefined = undefined,
  Chunk extends Schema | undefined = undefined,
  Result extends Parsed<Output> = Parsed<Output>,
>(
  options: ActionOptions<Input, Output, Chunk> & { readonly init?: Init },
  fn: (
    io: ConnectionIo<Parsed<Input>, Parsed<Chunk>, Parsed<Init>> & {
      readonly context: ActionContext;
    },
  ) => Promise<Result>,
): BidiAction<Given<Init>, Given<Input>, Result, Parsed<Chunk>> {
  const { key, name } = options;
  return {
    key,
    name,
    descriptor: describe(options),
    connect(init, { context = {}, ...connectOptions } = {}) {
      const connection = createConnection<Parsed<Input>, Result, Parsed<Chunk>>(async (io) => {
        const checked = await checkedBy(options.init, init, `The init of ${key}`);
        const result = await fn({ ...io, init: checked as Parsed<Init>, context });
        return (await checkedBy(options.output, result, `The output of ${key}`)) as Result;
      }, connectOptions);
      return checkingInputs(connection, (input) =>
        checkedBy(options.input, input, `The input of ${key}`),
      );
    },
  };
}

function checkedBy(schema: Schema | undefined, value: unknown, what: string): unknown {
  return schema ? parse(schema, value, what) : value;
}

/** A connection whose inputs are checked as they are sent; an asynchronous check does not change their order. */
function checkingInputs<Given, In, Out, Chunk>(
  connection: Connection<In, Out, Chunk>,
  check: (input: Given) => unknown,
): Connection<Given, Out, Chunk> {
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(step: () => T): Promise<Awaited<T>> => {
    const result = last.then(step) as Promise<Awaited<T>>;
    last = handled(result).catch(() => {});
    return result;
  };
  return {
    ...connection,
    // Only the check keeps the next one waiting: a full queue of inputs must not keep `output` from being asked for.
    send: (input) =>
      handled(inTurn(() => check(input)).then((checked) => connection.send(checked as In))),
    close: () => void inTurn(() => connection.close()),
    output: () => handled(inTurn(() => {}).then(() => connection.output())),
  };
}
