import { Channel } from '../core/async/channel.ts';
import { forCaller } from '../core/async/promises.ts';
import type { Schema } from '../core/schema/schema.ts';
import type { Part, Role, ToolRequestPart } from '../protocol/message.ts';
import { reasoningOf, textOf, toolRequestsOf } from '../protocol/messages.ts';
import type { ModelChunk } from '../protocol/turn.ts';
import type { GenerateResponse, OutputOf, Progress } from './answer/response.ts';
import { type GenerateCall, type GenerateEnv, runGenerate, StartedCall } from './generate.ts';
import type { GenerateOptions } from './generate-options.ts';
import { type OutputSetting, resolveOutput } from './output/output.ts';

/** A running generate call with its streaming answer. */
export interface GenerateStream<Output = unknown> extends GenerateCall<Output> {
  /** The pieces as they come; leaving it early does not end the call. It throws what the call failed with. */
  readonly stream: AsyncIterable<GenerateChunk<Output>>;
}

/** Starts a generate call and gives its pieces as they come; its options may still be in the making. */
export function streamGenerate<Output extends Schema | undefined>(
  env: GenerateEnv,
  options: GenerateOptions<Output> | Promise<GenerateOptions<Output>>,
  output?: GenerateOptions['output'],
): GenerateStream<OutputOf<Output>> {
  const setting = 'then' in options ? output : options.output;
  return new StreamedCall(async (progress, pass) => {
    const settled = 'then' in options ? await options : options;
    const { onChunk } = settled;
    let index: number | undefined;
    let text = '';
    const observe = (chunk: ModelChunk): void | Promise<void> => {
      if (chunk.index !== index) text = '';
      ({ index } = chunk);
      text += textOf(chunk);
      pass(new Chunk(chunk, text, setting));
      return onChunk?.(chunk);
    };
    return await runGenerate(env, { ...settled, onChunk: observe }, progress);
  });
}

class StreamedCall<Value> extends StartedCall<Value> implements GenerateStream<Value> {
  readonly stream: AsyncIterable<GenerateChunk<Value>>;

  constructor(
    run: (
      progress: Progress,
      pass: (chunk: GenerateChunk<Value>) => void,
    ) => Promise<GenerateResponse>,
  ) {
    // Unbounded: a caller may wait for the response without reading the pieces.
    const chunks = new Channel<GenerateChunk<Value>>();
    super((progress) => {
      const running = run(progress, (chunk) => chunks.push(chunk));
      running.then(
        () => chunks.close(),
        (error: unknown) => chunks.fail(error),
      );
      return forCaller(running);
    });
    this.stream = chunks;
  }
}

type DeepPartial<T> = T extends readonly (infer Item)[]
  ? readonly DeepPartial<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]?: DeepPartial<T[Key]> }
    : T;

/** A chunk of an answer, with the content so far. */
export interface GenerateChunk<Output = unknown> extends ModelChunk {
  /** The text of this piece. */
  readonly text: string;
  /** The reasoning of this piece. */
  readonly reasoning: string;
  /** The tool requests of this piece. */
  readonly toolRequests: readonly ToolRequestPart[];
  /** The text of the message so far. */
  readonly accumulatedText: string;
  /** The structured output as far as it is known; parsed when it is read. */
  readonly output: DeepPartial<Output> | undefined;
}

/** A chunk that knows the text before it in its message. Its other fields are read off when they are asked for. */
class Chunk<Output> implements GenerateChunk<Output> {
  readonly role: Role | undefined;
  readonly index: number | undefined;
  readonly content: Part[];
  readonly accumulatedText: string;
  readonly #options: OutputSetting;

  constructor({ role, index, content }: ModelChunk, text: string, options: OutputSetting) {
    this.role = role;
    this.index = index;
    this.content = content;
    this.accumulatedText = text;
    this.#options = options;
  }

  get text(): string {
    return textOf(this);
  }

  get reasoning(): string {
    return reasoningOf(this);
  }

  get toolRequests(): readonly ToolRequestPart[] {
    return toolRequestsOf(this);
  }

  get output(): DeepPartial<Output> | undefined {
    if (this.role !== 'model') return undefined;
    const { format } = resolveOutput(this.#options);
    // As far as it goes, the value has the type that the whole output is going to be checked for.
    return format.parsePartial(this.accumulatedText) as DeepPartial<Output> | undefined;
  }
}
