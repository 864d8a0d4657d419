import { createContextKey } from '../core/async/context.ts';
import { contentHash, jsonLength } from '../core/json/hash.ts';
import type { Json } from '../core/json/json.ts';
import type { JsonPatch } from '../core/json/patch.ts';
import type { ArtifactRef, ToolRecord } from '../protocol/messages/tool-record.ts';
import type { Artifact } from '../protocol/state.ts';

/** Artifacts with more characters are recorded by their hash: the states of the session have them already. */
const maxInlineLength = 4_096;

/** Collects what one tool call changes in its session, also through the functions that it calls. */
export class ToolEffects {
  readonly #owner: object;
  #custom: JsonPatch = [];
  #artifacts: readonly Artifact[] = [];
  #replacesAll = false;
  #changesMessages = false;
  #firstChange: number | undefined;

  /** `owner` is the working state whose changes count: a sub-agent inside the tool has another one. */
  constructor(owner: object) {
    this.#owner = owner;
  }

  /** Runs the tool. */
  run<Value>(fn: () => Value): Value {
    return current.run(this, fn);
  }

  /** The changes of the call; `undefined` if there are none. */
  record(): ToolRecord | undefined {
    const artifacts = this.#artifacts.length > 0 || this.#replacesAll;
    if (this.#custom.length === 0 && !artifacts && !this.#changesMessages) return undefined;
    return {
      ...(this.#custom.length > 0 && { custom: [...this.#custom] }),
      ...(artifacts && {
        artifacts: {
          ...(this.#replacesAll && { set: true }),
          items: this.#artifacts.map(refTo),
        },
      }),
      ...(this.#changesMessages && { messages: true }),
    };
  }

  get firstChange(): number | undefined {
    return this.#firstChange;
  }

  /** The tool call that a change of this working state belongs to, which is being made. */
  static of(working: object): ToolEffects | undefined {
    const effects = current.get();
    if (effects === undefined || effects.#owner !== working) return undefined;
    effects.#firstChange ??= changes++;
    return effects;
  }

  noteMessages(): void {
    this.#changesMessages = true;
  }

  noteCustom(patch: JsonPatch): void {
    this.#custom = [...this.#custom, ...patch];
  }

  noteAdded(added: readonly Artifact[]): void {
    const names = new Set(added.flatMap(({ name }) => name ?? []));
    const kept = this.#artifacts.filter(({ name }) => name === undefined || !names.has(name));
    this.#artifacts = [...kept, ...added];
  }

  noteSet(artifacts: readonly Artifact[]): void {
    this.#artifacts = artifacts;
    this.#replacesAll = true;
  }
}

let changes = 0;
const current = createContextKey<ToolEffects>('waymark.toolEffects');

function refTo(artifact: Artifact): ArtifactRef {
  const value = artifact as unknown as Json;
  if (jsonLength(value, maxInlineLength) <= maxInlineLength) return { artifact };
  const { name } = artifact;
  return { ...(name !== undefined && { name }), hash: contentHash(value) };
}
