import { fromBase64, toBase64 } from '../../core/base64.ts';
import { getOrMake } from '../../core/get-or-make.ts';
import { letOthersRun } from '../../core/platform.ts';
import { after, type Clock } from '../../core/time.ts';
import type { MemoryScope, MemorySupport, MemoryVersion } from '../../store/contract/store.ts';
import { vectorScope } from '../../store/rules/memory.ts';
import type { MemoryScopeIn, RankedVersion, VectorSearch } from '../contract/memory.ts';
import type { CheckedEmbedder } from './embed.ts';
import { indexOf, ScopeIndex, textIn } from './scope-index.ts';

/** Milliseconds that a search waits for the vector of its query. Then it goes on with words only. */
const queryMs = 2_000;
/** Milliseconds that one call for vectors of entries may take. */
const entriesMs = 60_000;
/** Failed calls in a row, after which embedding rests until the memory is used again. */
const maxFailures = 6;
/** Changes of the length of vectors in one process. */
const maxChanges = 3;
/** Queries whose vectors are kept. */
const maxQueries = 256;
/** Versions whose vectors are kept, over all scopes of a store. */
const maxKept = 50_000;
/** Vectors that are compared between two breaks for other work. */
const batch = 1_000;
/** Versions that are found by their vectors at most, and how alike they must be. */
const maxNearest = 1_000;
const leastAlike = 0.2;

/** What the vectors of a memory work with. */
export interface VectorEnv {
  readonly embedder: CheckedEmbedder;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly closing: AbortSignal | undefined;
  readonly report: (error: unknown) => void;
}

/** A stored vector. */
interface StoredVector {
  /** The id of the version. */
  readonly of: string;
  readonly model: string;
  /** 32-bit numbers as Base64. */
  readonly vector: string;
}

/**
 * The vectors of a scope. They are stored as versions of the same entries in a scope of their own, after the versions that they were made
 * of: so they are encrypted like them, and whatever deletes a version deletes its vector.
 */
class ScopeVectors extends ScopeIndex {
  readonly vectors = new Map<string, Float32Array>();
  /** The entries of the versions that have vectors. */
  readonly entryOf = new Map<string, string>();
  /** Entries with vectors of another model or length. */
  readonly stale = new Set<string>();
  readonly #model: string;
  /** The versions of the scope when all of them had vectors. */
  complete: string | undefined;
  /** The length of all vectors. */
  length: number | undefined;

  constructor(model: string) {
    super();
    this.#model = model;
  }

  override add({ value, ...version }: MemoryVersion): void {
    super.add(version);
    const { of, model, vector } = value as unknown as StoredVector;
    const bytes = fromBase64(vector);
    if (model !== this.#model || bytes === undefined) this.stale.add(version.entry);
    else this.#keep(version.entry, of, new Float32Array(bytes.buffer));
  }

  #keep(entry: string, of: string, vector: Float32Array): void {
    this.length ??= vector.length;
    if (vector.length === this.length) {
      this.vectors.set(of, vector);
      this.entryOf.set(of, entry);
    } else this.stale.add(entry);
  }

  /** Takes another length from now on. */
  setLength(length: number): void {
    this.length = length;
    for (const { entry } of this.versions) this.stale.add(entry);
    this.vectors.clear();
  }

  protected override clear(): void {
    super.clear();
    this.vectors.clear();
    this.entryOf.clear();
    this.stale.clear();
  }
}

/** Finds entries by meaning, and embeds them in the background. */
export class MemoryVectors implements VectorSearch {
  readonly #env: VectorEnv;
  readonly #scopes = new WeakMap<MemorySupport, Map<string, ScopeVectors>>();
  readonly #queries = new Map<string, Float32Array>();
  readonly #running = new Set<string>();
  #changes = 0;

  constructor(env: VectorEnv) {
    this.#env = env;
  }

  /** Versions by the words and by the meaning of a query, best first. */
  async rank(
    query: string,
    byWords: readonly RankedVersion[],
    { support, scope, index }: Parameters<VectorSearch['rank']>[2],
  ): Promise<readonly RankedVersion[]> {
    const known = this.#of(support, scope);
    try {
      await known.refresh(support, vectorScope(scope));
      if (known.complete !== stateOf(index, known)) this.embedLater({ support, scope });
      if (known.vectors.size === 0 || query.trim() === '') return byWords;
      const asked = await this.#queryVector(query);
      if (asked.length !== known.length) this.#changeLength(known, asked.length);
      return merged(byWords, await nearest(asked, known.vectors), index);
    } catch (error) {
      this.#env.report(error);
      return byWords;
    }
  }

  async #queryVector(query: string): Promise<Float32Array> {
    const found = this.#queries.get(query);
    if (found !== undefined) return found;
    const { embedder, clock, closing: signal } = this.#env;
    const [vector = new Float32Array()] = await embedder.embed([query], {
      ...{ clock, ms: queryMs, signal },
    });
    this.#queries.set(query, vector);
    for (const oldest of this.#queries.keys()) {
      if (this.#queries.size <= maxQueries) break;
      this.#queries.delete(oldest);
    }
    return vector;
  }

  /** Embeds what has no vector, in the background. */
  embedLater(place: MemoryScopeIn): void {
    const { key } = place.scope;
    if (this.#running.has(key) || this.#env.closing?.aborted === true) return;
    this.#running.add(key);
    void this.#embedAll(place)
      .catch(this.#env.report)
      .finally(() => this.#running.delete(key));
  }

  async #embedAll(place: MemoryScopeIn): Promise<void> {
    const { closing, report, clock } = this.#env;
    const isClosing = (): boolean => closing?.aborted === true;
    let failures = 0;
    while (!isClosing()) {
      try {
        if (!(await this.#embedSome(place))) return;
        failures = 0;
      } catch (error) {
        if (isClosing()) return;
        if (++failures === 1 || failures === maxFailures) report(error);
        if (failures === maxFailures) return;
        await pause(clock, 1_000 * 2 ** failures, closing);
      }
    }
  }

  /** Embeds a batch of versions. Resolves to whether there may be more. */
  async #embedSome({ support, scope }: MemoryScopeIn): Promise<boolean> {
    const { embedder, clock, closing: signal, newId } = this.#env;
    const own = vectorScope(scope);
    const known = this.#of(support, scope);
    await known.refresh(support, own);
    // After the vectors: a vector without a version belongs to one that was deleted while it was made.
    const index = await indexOf(support, scope);
    const gone = new Set(known.stale);
    for (const [of, entry] of known.entryOf) if (index.version(of) === undefined) gone.add(entry);
    if (gone.size > 0) {
      const entries = [...gone];
      for (let at = 0; at < entries.length; at += 500) {
        await support.remove(own, entries.slice(at, at + 500));
      }
      return true;
    }
    const missing: MemoryVersion[] = [];
    for (const version of index.versions) {
      if (version.value === undefined || known.vectors.has(version.id)) continue;
      missing.push(version);
      if (missing.length === embedder.most) break;
    }
    if (missing.length === 0) {
      known.complete = stateOf(index, known);
      return false;
    }
    // Once for each content.
    const byText = new Map<string, Float32Array>();
    const texts = [...new Set(missing.map(({ value }) => textIn(value)))];
    const vectors = await embedder.embed(texts, { clock, ms: entriesMs, signal });
    for (const [at, text] of texts.entries()) {
      const vector = vectors[at];
      if (vector !== undefined) byText.set(text, vector);
    }
    const length = vectors[0]?.length ?? 0;
    if (known.length !== undefined && known.length !== length) this.#changeLength(known, length);
    for (const { id: of, entry, value, owner } of missing) {
      const vector = byText.get(textIn(value));
      if (vector === undefined) continue;
      const stored = { of, model: embedder.model, vector: toBase64(new Uint8Array(vector.buffer)) };
      await support.add({ scope: own.key, id: newId(), entry, value: stored }, owner);
    }
    return true;
  }

  #changeLength(known: ScopeVectors, length: number): void {
    if (++this.#changes > maxChanges) {
      throw new TypeError('The embedder keeps changing the length of its vectors.');
    }
    this.#queries.clear();
    known.setLength(length);
  }

  #of(support: MemorySupport, { key }: MemoryScope): ScopeVectors {
    const scopes = getOrMake(this.#scopes, support, () => new Map<string, ScopeVectors>());
    const found = scopes.get(key) ?? new ScopeVectors(this.#env.embedder.model);
    // The least recently used first.
    scopes.delete(key);
    scopes.set(key, found);
    let count = 0;
    for (const each of scopes.values()) count += each.vectors.size + 1;
    for (const [old, each] of scopes) {
      if (count <= maxKept || each === found) break;
      count -= each.vectors.size + 1;
      scopes.delete(old);
    }
    return found;
  }
}

/** Changes whenever versions or vectors are added or deleted. */
function stateOf(index: Pick<ScopeIndex, 'versions'>, known: ScopeVectors): string {
  const parts = [index, known].map(({ versions }) => `${versions.length} ${versions.at(-1)?.no}`);
  return `${parts.join(' ')} ${known.stale.size}`;
}

/** The ids of the versions with the most similar vectors, with their cosines. */
async function nearest(
  asked: Float32Array,
  vectors: ReadonlyMap<string, Float32Array>,
): Promise<ReadonlyMap<string, number>> {
  const found: [id: string, alike: number][] = [];
  let compared = 0;
  for (const [id, vector] of vectors) {
    if (++compared % batch === 0) await letOthersRun();
    const alike = dot(asked, vector);
    if (alike >= leastAlike) found.push([id, alike]);
  }
  if (found.length > maxNearest) found.sort((a, b) => b[1] - a[1]);
  return new Map(found.slice(0, maxNearest));
}

/** The cosine of two unit vectors. Four sums at once are twice as fast as one. */
function dot(a: Float32Array, b: Float32Array): number {
  const { length } = b;
  if (a.length !== length) return 0;
  let [first, second, third, fourth, at] = [0, 0, 0, 0, 0];
  for (; at + 3 < length; at += 4) {
    first += (a[at] as number) * (b[at] as number);
    second += (a[at + 1] as number) * (b[at + 1] as number);
    third += (a[at + 2] as number) * (b[at + 2] as number);
    fourth += (a[at + 3] as number) * (b[at + 3] as number);
  }
  for (; at < length; at++) first += (a[at] as number) * (b[at] as number);
  return first + second + third + fourth;
}

/** Versions that words or vectors have found. What both have found is better than what one has. */
function merged(
  byWords: readonly RankedVersion[],
  alike: ReadonlyMap<string, number>,
  index: Pick<ScopeIndex, 'version'>,
): readonly RankedVersion[] {
  const words = new Set(byWords.map(({ version }) => version.id));
  const ranked = byWords.map(({ version, score }) => ({
    version,
    score: 1 - (1 - score) * (1 - (alike.get(version.id) ?? 0)),
  }));
  for (const [id, score] of alike) {
    const version = words.has(id) ? undefined : index.version(id);
    if (version !== undefined) ranked.push({ version, score });
  }
  return ranked.sort((a, b) => b.score - a.score || b.version.no - a.version.no);
}

/** Waits without keeping the process alive. */
function pause(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const cancel = after(clock, ms, resolve);
  const onAbort = (): void => {
    cancel();
    resolve();
  };
  signal?.addEventListener('abort', onAbort, { once: true });
  return promise.finally(() => signal?.removeEventListener('abort', onAbort));
}
