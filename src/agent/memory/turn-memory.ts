import { WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import type {
  CommitWrite,
  MemoryNote,
  MemoryPlace,
  MemorySource,
  MemorySpan,
  MemorySupport,
  MemoryVersion,
  MemoryWrite,
  Scope,
  TurnMemoryVersion,
} from '../../store/contract/store.ts';
import { emptyNote, extendMemoryPath, isOnMemoryPath } from '../../store/rules/memory.ts';
import type { Viewpoint } from './view.ts';

/** Versions that the turns of a run write at most. */
const maxWrites = 1_000;

/** The turn that a memory belongs to. */
export interface MemoryTurn {
  readonly support: MemorySupport;
  readonly scope: Scope;
  readonly sessionId: string;
  /** The snapshot that the run continues from. */
  readonly baseId: string | undefined;
  readonly runId: string;
  /** Whether an earlier attempt may have left a checkpoint. */
  readonly isRepeated: boolean;
  readonly newId: () => string;
  readonly now: () => number;
}

/** Memory as one run sees it: what was visible where it started, and what its turns have written since. */
export class TurnMemory {
  readonly #turn: MemoryTurn;
  #loading: Promise<void> | undefined;
  #base: MemoryNote = emptyNote;
  #place: MemoryPlace | undefined;
  #family: string | undefined;
  /** The path of the last commit, and with what is not saved yet. */
  #savedPath: readonly MemorySpan[] = [];
  #path: readonly MemorySpan[] = [];
  #last = 0;
  #writes = 0;
  /** Not saved yet. */
  #pending: TurnMemoryVersion[] = [];
  /** Everything that this attempt has written. */
  readonly #own: MemoryVersion[] = [];
  #given: readonly string[] = [];
  /** Given to an earlier attempt of the turn. */
  #restored: readonly string[] | undefined;
  #isLoaded = false;

  constructor(turn: MemoryTurn) {
    this.#turn = turn;
  }

  /** Reads where the session stands. Rejects if the store cannot say it; then nothing is saved. */
  load(): Promise<void> {
    this.#loading ??= this.#load();
    return this.#loading;
  }

  async #load(): Promise<void> {
    const { support, scope, sessionId, baseId, runId, isRepeated } = this.#turn;
    const [session, base, left] = await Promise.all([
      support.session(scope, sessionId),
      baseId === undefined ? undefined : support.note(scope.owner, baseId),
      isRepeated ? support.note(scope.owner, runId) : undefined,
    ]);
    const { family, lane, last } = session;
    this.#base = base ?? emptyNote;
    this.#family = family;
    if (family !== undefined && lane !== undefined) this.#place = { family, lane };
    this.#last = last;
    this.#path = this.#savedPath = this.#base.path;
    if (left?.given !== undefined && left.given.length > 0) this.#restored = left.given;
    for (const version of left?.pending ?? []) {
      // A snapshot within the turn may have saved it after the checkpoint.
      const place = this.#placed();
      if (!isOnMemoryPath(this.#base.path, { ...place, seq: version.seq })) this.#push(version);
    }
    this.#isLoaded = true;
  }

  /** From where the turn looks at memory. */
  get viewpoint(): Viewpoint {
    return { path: this.#path, family: this.#family, pending: this.#own };
  }

  /** The ids of the versions that an earlier attempt of the turn was given, once. */
  takeRestored(): readonly string[] | undefined {
    const restored = this.#restored;
    this.#restored = undefined;
    return restored;
  }

  /** Notes the versions that the turn is given. Those of an earlier turn of the run stay noted. */
  give(ids: readonly string[]): void {
    this.#given = [...new Set([...this.#given, ...ids])];
  }

  /** Writes a version, which is saved with the turn. Without a value, the entry is forgotten. */
  write(
    scope: string,
    entry: string | undefined,
    value: Json | undefined,
    message: number,
  ): MemoryVersion {
    if (this.#writes >= maxWrites) throw tooManyWrites();
    const { newId, now } = this.#turn;
    const id = newId();
    const seq = Math.max(this.#last + 1, now());
    const version = { scope, id, entry: entry ?? id, seq, message };
    return this.#push(value === undefined ? version : { ...version, value });
  }

  /** Reserves a number at the end of the turn for what is extracted from it later. Called again, it keeps the first one. */
  reserve(scope: string): void {
    if (this.#pending.some((version) => version.scope === scope)) return;
    const { newId, now } = this.#turn;
    const id = newId();
    this.#push({ scope, id, entry: id, seq: Math.max(this.#last + 1, now()), message: 0 });
  }

  #push(version: TurnMemoryVersion): MemoryVersion {
    const { lane } = this.#placed();
    const { seq, message, scope: _, ...rest } = version;
    this.#path = extendMemoryPath(this.#path, { lane, seq, last: this.#last });
    this.#last = seq;
    this.#writes++;
    this.#pending.push(version);
    const { scope, sessionId, runId, now } = this.#turn;
    const source: MemorySource = {
      ...{ agent: scope.agent, sessionId, snapshotId: runId },
      ...{ ...this.#placed(), seq, message },
    };
    const { owner } = scope;
    const own = { ...rest, no: Number.MAX_SAFE_INTEGER, createdAt: now(), source };
    this.#own.push(owner === undefined ? own : { ...own, owner });
    return this.#own.at(-1) ?? own;
  }

  #placed(): MemoryPlace {
    this.#place ??= { family: this.#turn.newId(), lane: this.#turn.newId() };
    return this.#place;
  }

  /** The part of a commit. A turn that does not succeed remembers nothing. */
  commit({ status }: Pick<CommitWrite, 'status'>): { readonly memory?: MemoryWrite } {
    if (!this.#isLoaded) return {};
    const isKept = status === 'succeeded';
    const path = isKept ? this.#path : this.#base.path;
    const versions = isKept ? [...this.#pending] : [];
    const given = this.#given;
    if (path.length === 0 && given.length === 0) return {};
    const place = versions.length > 0 && this.#place !== undefined && { place: this.#place };
    return { memory: { ...place, versions, note: { path, given } } };
  }

  /** The part of a checkpoint. */
  checkpoint(): { readonly memory?: MemoryWrite } {
    const given = this.#given;
    const pending = [...this.#pending];
    if (!this.#isLoaded || (pending.length === 0 && given.length === 0)) return {};
    const place = pending.length > 0 && this.#place !== undefined && { place: this.#place };
    return { memory: { ...place, versions: [], note: { path: this.#savedPath, given, pending } } };
  }

  /** Notes that a commit was saved. */
  saved({ memory }: Pick<CommitWrite, 'memory'>): void {
    const ids = new Set(memory?.versions.map(({ id }) => id));
    this.#pending = this.#pending.filter(({ id }) => !ids.has(id));
    if (memory !== undefined) this.#savedPath = memory.note.path;
  }
}

function tooManyWrites(): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `A turn can write at most ${maxWrites} versions to memory. Summarize, or write the rest in another turn.`,
    { details: { limit: 'memory.writes', most: maxWrites } },
  );
}
