import { createChannel } from '../core/channel.ts';
import type { Schema } from '../core/schema.ts';
import type { Message } from '../protocol/message.ts';
import type { ModelChunk, Usage } from '../protocol/turn.ts';
import { type GenerateEnv, runGenerate } from './generate.ts';
import { ChunkReader, type GenerateChunk } from './generate-chunk.ts';
import type { GenerateOptions } from './generate-options.ts';
import type { GenerateResponse, OutputOf } from './generate-response.ts';
import { Progress } from './progress.ts';

/** A generate call that is under way. */
export interface GenerateStream<Output = unknown> {
  /** The pieces as they come; leaving it early does not end the call. It throws what the call failed with. */
  readonly stream: AsyncIterable<GenerateChunk<Output>>;
  readonly response: Promise<GenerateResponse<Output>>;
  /**
   * The messages that the call has added so far, valid for every provider at any moment: of an answer that was stopped what
   * there is of it, and no tool request without a response. This is what is left when the call fails.
   */
  readonly messages: readonly Message[];
  /** The tokens so far. */
  readonly usage: Usage;
}

/** Starts a generate call and gives its pieces as they come; its options may still be in the making. */
export function startGenerate<Output extends Schema | undefined>(
  env: GenerateEnv,
  options: GenerateOptions<Output> | Promise<GenerateOptions<Output>>,
  output?: GenerateOptions['output'],
): GenerateStream<OutputOf<Output>> {
  type Value = OutputOf<Output>;
  const progress = new Progress();
  const reader = new ChunkReader<Value>('then' in options ? output : options.output);
  // Without a limit: who waits for the response alone must not have to read the pieces.
  const chunks = createChannel<GenerateChunk<Value>>({ capacity: Number.POSITIVE_INFINITY });
  const run = async (): Promise<GenerateResponse> => {
    const settled = 'then' in options ? await options : options;
    const { onChunk } = settled;
    const observe = (chunk: ModelChunk): void | Promise<void> => {
      chunks.trySend(reader.read(chunk));
      return onChunk?.(chunk);
    };
    return runGenerate(env, { ...settled, onChunk: observe }, progress);
  };
  // The output of the call is read by the schema that its type comes from.
  const response = run() as Promise<GenerateResponse<Value>>;
  // Watched here, so that a failure is not unhandled when only the stream is read.
  response.then(
    () => chunks.close(),
    (error: unknown) => chunks.fail(error),
  );
  return {
    stream: chunks,
    response,
    get messages() {
      return progress.messages;
    },
    get usage() {
      return progress.usage;
    },
  };
}
