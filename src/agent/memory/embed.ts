import { raceSignal } from '../../core/async/signal.ts';
import { invalid, WaymarkError } from '../../core/error.ts';
import { type Clock, timeoutSignal } from '../../core/time.ts';
import type { Embedder } from '../contract/memory.ts';

/** An embedder, checked and bounded. */
export interface CheckedEmbedder {
  readonly model: string;
  /** Texts that one call takes at most. */
  readonly most: number;
  /** Unit vectors of one length, one for each text. */
  embed(
    texts: readonly string[],
    within: {
      readonly clock: Clock;
      readonly ms: number;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<readonly Float32Array[]>;
}

const maxTexts = 64;
/** Numbers of a vector at most. */
const maxLength = 8_192;

export function checkedEmbedder(embed: Embedder, memory: string): CheckedEmbedder {
  const isModel = typeof embed === 'object' && typeof embed?.doEmbed === 'function';
  if (!isModel && typeof embed !== 'function') {
    throw invalid(
      `The \`embed\` of memory "${memory}" must be an embedding model with doEmbed(), as in openai.embedding('text-embedding-3-small'), or a function that embeds texts.`,
    );
  }
  const limit = typeof embed === 'function' ? undefined : embed.maxEmbeddingsPerCall;
  return {
    model: typeof embed === 'function' ? embed.name : String(embed.modelId),
    most: typeof limit === 'number' && limit > 0 ? Math.min(maxTexts, limit) : maxTexts,
    async embed(texts, { clock, ms, signal: closing }) {
      const timeout = timeoutSignal(clock, ms, closing);
      const { signal } = timeout;
      const call = async (): Promise<readonly ArrayLike<number>[]> =>
        typeof embed === 'function'
          ? await embed(texts, { signal })
          : (await embed.doEmbed({ values: [...texts], abortSignal: signal })).embeddings;
      // An embedder that ignores its signal is left behind.
      const vectors = await raceSignal(call(), signal).finally(() => timeout.release());
      return checkedVectors(vectors, texts.length, memory);
    },
  };
}

function checkedVectors(
  vectors: readonly ArrayLike<number>[],
  count: number,
  memory: string,
): Float32Array[] {
  const wrong = (why: string): WaymarkError =>
    new WaymarkError('INTERNAL', `The embedder of memory "${memory}" ${why}.`);
  if (!Array.isArray(vectors) || vectors.length !== count) {
    throw wrong(`must return ${count} vectors, one for each text`);
  }
  const length = vectors[0]?.length ?? 0;
  if (length === 0 || length > maxLength || vectors.some((each) => each?.length !== length)) {
    throw wrong(`must return vectors of one length, from 1 to ${maxLength}`);
  }
  return vectors.map((each) => {
    const vector = Float32Array.from(each);
    let sum = 0;
    for (const value of vector) sum += value * value;
    if (!Number.isFinite(sum)) throw wrong('returned a vector with a number that is not finite');
    const size = Math.sqrt(sum) || 1;
    return vector.map((value) => value / size);
  });
}
