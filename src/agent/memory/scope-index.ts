import { Mutex } from '../../core/async/promises.ts';
import { WaymarkError } from '../../core/error.ts';
import { getOrMake } from '../../core/get-or-make.ts';
import type { Json } from '../../core/json/json.ts';
import { letOthersRun } from '../../core/platform.ts';
import type { MemoryScope, MemorySupport, MemoryVersion } from '../../store/contract/store.ts';
import { wordsOf } from '../../store/rules/session-filter.ts';
import type { RankedVersion } from '../contract/memory.ts';

/** Versions of a scope at most: all of them are in memory while it is searched. */
const maxVersions = 100_000;
/** Versions that are kept in memory for the next search, over all scopes of a store. */
const maxKept = 200_000;
/** Words of a query that count. */
const maxQueryWords = 64;
/** Versions between two breaks for other work. */
const batch = 250;
/** Words that begin alike are found by so many characters. */
const stem = 3;
/** A word that only begins like the one that is looked for. */
const partly = 0.6;

/** The versions of a scope with an index of their words, as they are in the store at the last `refresh`. */
export class ScopeIndex {
  readonly #mutex = new Mutex();
  #versions: MemoryVersion[] = [];
  #entries = new Map<string, MemoryVersion[]>();
  #byId = new Map<string, MemoryVersion>();
  /** The versions with a word, by their places. */
  #words = new Map<string, number[]>();
  #stems = new Map<string, string[]>();

  /** All versions, oldest first. */
  get versions(): readonly MemoryVersion[] {
    return this.#versions;
  }

  /** A version by its id. */
  version(id: string): MemoryVersion | undefined {
    return this.#byId.get(id);
  }

  /** The versions of an entry, oldest first. */
  entry(id: string): readonly MemoryVersion[] {
    return this.#entries.get(id) ?? [];
  }

  /** Brings the index up to date: reads what is new, and everything if something was deleted. */
  refresh(support: MemorySupport, scope: MemoryScope): Promise<void> {
    return this.#mutex.run(async () => {
      // Twice: versions may be deleted while they are read.
      for (let left = 2; left > 0; left--) {
        const count = await this.#readNew(support, scope);
        if (count === this.#versions.length) return;
        this.clear();
      }
      await this.#readNew(support, scope);
    });
  }

  async #readNew(support: MemorySupport, scope: MemoryScope): Promise<number> {
    for (;;) {
      const after = this.#versions.at(-1)?.no ?? 0;
      const { versions, count } = await support.read(scope, after);
      if (this.#versions.length + versions.length > maxVersions) throw tooMany();
      for (let at = 0; at < versions.length; at += batch) {
        if (at > 0) await letOthersRun();
        for (const version of versions.slice(at, at + batch)) this.add(version);
      }
      if (count !== undefined) return count;
      await letOthersRun();
    }
  }

  add(version: MemoryVersion): void {
    const place = this.#versions.length;
    this.#versions.push(version);
    this.#byId.set(version.id, version);
    getOrMake(this.#entries, version.entry, () => []).push(version);
    for (const word of version.value === undefined ? [] : wordsOf(textIn(version.value))) {
      const places = this.#words.get(word);
      if (places !== undefined) places.push(place);
      else {
        this.#words.set(word, [place]);
        getOrMake(this.#stems, word.slice(0, stem), () => []).push(word);
      }
    }
  }

  /** The versions that have words of a query, best first, with their scores: 1 has all of its words. */
  rank(query: string): readonly RankedVersion[] {
    const words = wordsOf(query).slice(0, maxQueryWords);
    const scores = new Map<number, number>();
    let total = 0;
    for (const word of words) {
      const found = this.#placesOf(word);
      // A rare word says more.
      const weight = Math.log(1 + (this.#versions.length + 1) / (found.size + 1));
      total += weight;
      for (const [place, share] of found) {
        scores.set(place, (scores.get(place) ?? 0) + weight * share);
      }
    }
    const ranked: RankedVersion[] = [];
    for (const [place, score] of scores) {
      const version = this.#versions[place];
      if (version !== undefined) ranked.push({ version, score: score / total });
    }
    return ranked.sort((a, b) => b.score - a.score || b.version.no - a.version.no);
  }

  #placesOf(word: string): Map<number, number> {
    const found = new Map<number, number>();
    const isAlike = (other: string): boolean =>
      other.length >= stem && (other.startsWith(word) || word.startsWith(other));
    const alike =
      word.length < stem ? [] : (this.#stems.get(word.slice(0, stem)) ?? []).filter(isAlike);
    for (const other of alike) {
      for (const place of this.#words.get(other) ?? []) found.set(place, partly);
    }
    for (const place of this.#words.get(word) ?? []) found.set(place, 1);
    return found;
  }

  protected clear(): void {
    this.#versions = [];
    this.#entries = new Map();
    this.#byId = new Map();
    this.#words = new Map();
    this.#stems = new Map();
  }
}

/** The texts and numbers in a value. */
export function textIn(value: Json | undefined): string {
  if (typeof value === 'string') return value;
  if (typeof value !== 'object' || value === null) return String(value);
  return Object.values(value).map(textIn).join(' ');
}

function tooMany(): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `This part of the memory has more than ${maxVersions} versions. Remove old entries with prune().`,
    { details: { limit: 'memory', most: maxVersions } },
  );
}

// The least recently used first.
const kept = new WeakMap<MemorySupport, Map<string, ScopeIndex>>();

/** The index of a scope, up to date. */
export async function indexOf(support: MemorySupport, scope: MemoryScope): Promise<ScopeIndex> {
  const known = getOrMake(kept, support, () => new Map<string, ScopeIndex>());
  const index = known.get(scope.key) ?? new ScopeIndex();
  known.delete(scope.key);
  known.set(scope.key, index);
  await index.refresh(support, scope);
  let versions = 0;
  for (const each of known.values()) versions += each.versions.length + 1;
  for (const [key, each] of known) {
    if (versions <= maxKept || each === index) break;
    versions -= each.versions.length + 1;
    known.delete(key);
  }
  return index;
}
