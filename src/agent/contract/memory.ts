import type { SnapshotRef } from '../../api/turn-values.ts';
import type { ActionContext } from '../../core/action.ts';
import type { InferSchema, InferSchemaInput, Schema } from '../../core/schema/schema.ts';
import type { MemoryEntry, MemoryHit, MemoryVersionInfo } from '../../protocol/memory.ts';
import type { Message } from '../../protocol/message.ts';
import type { Page } from '../../protocol/session.ts';
import type {
  ListOptions,
  MemoryScope,
  MemorySupport,
  MemoryVersion,
} from '../../store/contract/store.ts';

/** Whose entries a memory has. */
export type MemoryScopeOption = 'owner' | 'agent' | 'app' | ((context: ActionContext) => string);

/** The reader or writer of entries. */
export interface MemoryUser {
  /** The owner of the session or of the call. */
  readonly owner?: string | undefined;
  /** The name of the agent; without one, the app calls. */
  readonly agent?: string | undefined;
  /** The context of the call. */
  readonly context: ActionContext;
}

/** An embedding model of an AI SDK provider. */
export interface EmbeddingModel {
  /** The name of the model. Another name embeds all entries again. */
  readonly modelId: string;
  /** Texts that one call takes at most. */
  readonly maxEmbeddingsPerCall?: number | undefined | PromiseLike<number | undefined>;
  /** Embeds texts. */
  doEmbed(call: {
    readonly values: string[];
    readonly abortSignal?: AbortSignal;
  }): PromiseLike<{ readonly embeddings: readonly (readonly number[])[] }>;
}

/** Embeds texts in your own code. Entries are embedded again when its name or the length of its vectors changes. */
export type EmbedTexts = (
  texts: readonly string[],
  call: { readonly signal: AbortSignal },
) => Promise<readonly ArrayLike<number>[]>;

/** What embeds the entries of a memory. */
export type Embedder = EmbeddingModel | EmbedTexts;

/** A version that a search has found. */
export interface RankedVersion {
  readonly version: MemoryVersion;
  readonly score: number;
}

/** Where versions are: a scope in a store. */
export interface MemoryScopeIn {
  readonly support: MemorySupport;
  readonly scope: MemoryScope;
}

/** Finds entries by meaning. */
export interface VectorSearch {
  /** Versions by the words and by the meaning of a query, best first. */
  rank(
    query: string,
    byWords: readonly RankedVersion[],
    place: MemoryScopeIn & {
      readonly index: {
        readonly versions: readonly MemoryVersion[];
        version(id: string): MemoryVersion | undefined;
      };
    },
  ): Promise<readonly RankedVersion[]>;
  /** Embeds what has no vector, in the background. */
  embedLater(place: MemoryScopeIn): void;
}

/** The part of a memory that agents use. */
export interface MemoryDefinition {
  readonly name: string;
  readonly description: string | undefined;
  readonly schema: Schema;
  readonly scope: MemoryScopeOption;
  readonly canWrite: ((context: ActionContext, user: MemoryUser) => boolean) | undefined;
  /** The memory of the app's store. */
  readonly support: MemorySupport;
  /** Finds entries by meaning. */
  readonly vectors: VectorSearch | undefined;
  /** Extracts entries from a turn that has been saved, in the background. */
  readonly extractor: MemoryExtractor | undefined;
}

/** A turn that entries are extracted from. */
export interface ExtractedTurn {
  readonly agent: string;
  readonly sessionId: string;
  readonly snapshotId: string;
  /** The index of its first message. */
  readonly from: number;
  /** The key of the scope that the entries belong to, and the owner who wrote all of it. */
  readonly scope: string;
  readonly scopeOwner?: string | undefined;
}

export interface MemoryExtractor {
  /** Stores the work. It then survives the process. */
  start(turn: ExtractedTurn, owner: string | undefined): Promise<void>;
}

/** What `extract` gets. */
export interface Extraction<Value = unknown> {
  /** The messages that the turn added, with its input. */
  readonly messages: readonly Message[];
  /** The newest entries that are known at the snapshot of the turn, at most 100. */
  readonly known: readonly { readonly id: string; readonly value: Value }[];
  /** The owner of the session. */
  readonly owner?: string | undefined;
  /** Aborts when the work has to stop. */
  readonly signal: AbortSignal;
}

/** Options of a memory. */
export interface MemoryOptions<Value extends Schema = Schema> {
  /** The name, unique in the app. Stored entries belong to it. */
  readonly name: string;
  /** The schema of an entry: an object. */
  readonly schema: Value;
  /**
   * Whose entries there are: those of each owner, of each agent, of the whole app, or of the text that a function makes of the caller's context.
   * @default 'owner'
   */
  readonly scope?: MemoryScopeOption;
  /** Tells models what to remember. */
  readonly description?: string;
  /**
   * Decides whether the turns of a caller may write. Calls outside of turns may always write.
   * @default yes, but no for the scopes 'agent' and 'app'
   */
  readonly canWrite?: (context: ActionContext, user: MemoryUser) => boolean;
  /**
   * Embeds entries and queries, so that a search finds what has the same meaning in other words: an embedding model of an AI SDK provider, or a function that
   * returns a vector for each text. Entries are embedded in the background.
   * @default search finds words only
   */
  readonly embed?: Embedder;
  /**
   * Returns what is worth remembering of a turn, at most 100 entries. Runs in the background after each turn of an agent with this memory. Its entries belong to the
   * snapshot of the turn.
   * @default nothing is extracted
   */
  readonly extract?: (
    turn: Extraction<InferSchema<Value>>,
  ) => readonly InferSchemaInput<Value>[] | Promise<readonly InferSchemaInput<Value>[]>;
}

/** Whose memory a call works on. Inside a turn, it is that of the turn. */
export interface MemoryWhere {
  /** The owner. Sources of entries are shown only to the owner who wrote them. */
  readonly owner?: string;
  /** The agent, for the scope 'agent'. */
  readonly agent?: string;
  /** The caller's context, for a scope of your own. */
  readonly context?: ActionContext;
}

/** From where a call looks at memory. */
export interface MemoryReading extends MemoryWhere {
  /**
   * A snapshot, its id, or the output of its turn: gives what was known there. Those are the entries on the path to it, and of other sessions those that were
   * saved before it and are visible today.
   */
  readonly asOf?: SnapshotRef;
}

/** The entries to keep. An entry goes if one of the options says so. */
export interface MemoryRetention extends MemoryWhere {
  /** Deletes entries whose newest version is older than this number of milliseconds. */
  readonly olderThan?: number;
  /** Keeps the newest n entries. */
  readonly keepLast?: number;
}

/**
 * What agents have learned, across sessions. Each version of an entry has a source: the turn that wrote it. Entries of a turn that a
 * restore has left are hidden until the head comes back, and deleting a session deletes what came from it.
 */
export interface Memory<Value = unknown, Input = Value> {
  /** The name. */
  readonly name: string;
  /** Entries that have words of the query, best first. @default limit: 10 */
  search(
    query: string,
    where?: MemoryReading & { readonly limit?: number },
  ): Promise<readonly MemoryHit<Value>[]>;
  /** All visible entries, newest first. */
  list(where?: MemoryReading & ListOptions): Promise<Page<MemoryEntry<Value>>>;
  /** Adds an entry. Inside a turn, it is saved with the turn; outside of one, at once and without a source. */
  add(value: Input, where?: MemoryWhere): Promise<MemoryEntry<Value>>;
  /** Replaces the content of an entry, as a new version. */
  update(id: string, value: Input, where?: MemoryWhere): Promise<MemoryEntry<Value>>;
  /**
   * Forgets an entry. Inside a turn, this is a version that is saved with the turn, and a restore takes it back. Outside of one, it
   * deletes the entry with all its versions for good. Resolves to whether there was such an entry.
   */
  forget(id: string, where?: MemoryWhere): Promise<boolean>;
  /** The visible versions of an entry, oldest first. */
  history(id: string, where?: MemoryReading): Promise<readonly MemoryVersionInfo<Value>[]>;
  /** Deletes old entries with all their versions, whether they are visible or not. Resolves to their number. */
  prune(policy: MemoryRetention): Promise<number>;
}
