import type { Part, Role, ToolRequestPart } from '../protocol/message.ts';
import { reasoningOf, textOf } from '../protocol/messages/text.ts';
import { toolRequestsOf } from '../protocol/messages/tool-round.ts';
import type { ModelChunk } from '../protocol/turn.ts';
import { type OutputSetting, resolveOutput } from './output/output.ts';

/** A type of which everything may still be missing. */
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
  /** What can be said of the structured output so far; worked out when it is read. */
  readonly output: DeepPartial<Output> | undefined;
}

/** Makes chunks that know what came before them in their message. */
export class ChunkReader<Output> {
  readonly #options: OutputSetting;
  #index: number | undefined;
  #text = '';

  constructor(options: OutputSetting) {
    this.#options = options;
  }

  read(chunk: ModelChunk): GenerateChunk<Output> {
    if (chunk.index !== this.#index) {
      this.#index = chunk.index;
      this.#text = '';
    }
    this.#text += textOf(chunk);
    return new Chunk(chunk, this.#text, this.#options);
  }
}

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
