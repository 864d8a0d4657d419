import { failedPrecondition, invalid, WaymarkError } from '../core/error.ts';
import { diffJson } from '../core/json/diff.ts';
import { carryHashes, contentHash } from '../core/json/hash.ts';
import { type Json, jsonEqual, jsonLength, toJson } from '../core/json/json.ts';
import { type JsonPatch, joinPatches } from '../core/json/patch.ts';
import { produce } from '../core/json/produce.ts';
import { checkVariadic } from '../core/options.ts';
import { createContextKey } from '../core/platform.ts';
import {
  checkArtifactName,
  editArtifactText,
  fileHashesIn,
  type TextEdit,
  treeHashesIn,
  treeHashIn,
  withoutTree,
  withTree,
} from '../protocol/artifacts.ts';
import type { Message } from '../protocol/message.ts';
import type { OpenedFile, OpenFileOptions } from '../protocol/opened-file.ts';
import { parseArtifact, parseMessage } from '../protocol/parse.ts';
import type { Artifact, State } from '../protocol/state.ts';
import type { ArtifactRef, ToolRecord } from '../protocol/tool-record.ts';
import type { ArtifactPatch } from '../protocol/turn.ts';
import type { NewFile, Session, SessionFiles } from './session.ts';
import { hashState, type SessionState, toPlainState, withoutMark } from './session-state.ts';

/** Artifacts with more characters are recorded by their hash: the states of the session have them already. */
const maxInlineLength = 4_096;

/** Collects what one tool call changes in its session, also through the functions that it calls. */
export class ToolEffects {
  readonly #owner: object;
  #custom: JsonPatch = [];
  #artifacts: readonly Artifact[] = [];
  #replacesAll = false;
  #changesMessages = false;
  #call: ToolRecord['call'];
  #calls: NonNullable<ToolRecord['calls']> = [];
  /** The call of the sub-agent that this one is made in. */
  readonly #outer = current.get();
  #firstChange: number | undefined;

  /** `owner` is the working state whose changes count: a sub-agent inside the tool has another one. */
  constructor(owner: object) {
    this.#owner = owner;
  }

  run<Value>(fn: () => Value): Value {
    return current.run(this, fn);
  }

  /** The changes of the call; `undefined` if there are none. */
  record(): ToolRecord | undefined {
    const artifacts = this.#artifacts.length > 0 || this.#replacesAll;
    const isSilent = this.#call === undefined && this.#calls.length === 0;
    if (isSilent && this.#custom.length === 0 && !artifacts && !this.#changesMessages)
      return undefined;
    return {
      ...(this.#call && { call: this.#call }),
      ...(this.#calls.length > 0 && { calls: this.#calls }),
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

  /** Notes a call that may have had an effect elsewhere, also for the calls of sub-agents that it was made in. */
  static noteCall(working: object, call: NonNullable<ToolRecord['calls']>[number]): void {
    for (let at = current.get(); at; at = at.#outer) {
      if (at.#owner === working) at.#call ??= { key: call.key, at: call.at };
      else at.#calls.push(call);
    }
  }

  /** The call was interrupted before it was done. */
  static dropCall(key: string): void {
    for (let at = current.get(); at; at = at.#outer) {
      if (at.#call?.key === key) at.#call = undefined;
      at.#calls = at.#calls.filter((each) => each.key !== key);
    }
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

export interface StateListener {
  readonly onMessages: (messages: readonly Message[]) => void;
  /** The artifacts that are new or differ from the one they replace, in order; the edit, if that is what they come from. */
  readonly onArtifacts: (artifacts: readonly Artifact[], patch?: ArtifactPatch) => void;
  readonly onCustom: (change: {
    readonly patch: JsonPatch;
    readonly custom: Json | undefined;
  }) => void;
}

/**
 * The state that a session is at while it is worked on: a line of immutable states, with the change of the custom state
 * since the last saved one. Values are parsed, copied and frozen; a refused value changes nothing.
 */
export class WorkingState {
  #state: SessionState;
  #customPatch: JsonPatch = [];
  #patchedFrom: Json | undefined;
  #closed: string | undefined;
  #listener: StateListener | undefined;
  /** Files that the session has, or had in this turn, besides those of the state. */
  #files: Set<string> | undefined;

  constructor(state: SessionState) {
    this.#state = state;
    this.#patchedFrom = state.custom;
  }

  get state(): SessionState {
    return this.#state;
  }

  /** The change of the custom state since {@link WorkingState.saved}. */
  get customPatch(): JsonPatch {
    return this.#customPatch;
  }

  /** The custom state that {@link WorkingState.customPatch} leads on from. */
  get patchedFrom(): Json | undefined {
    return this.#patchedFrom;
  }

  /** Replaces the listener. */
  listen(listener: StateListener): void {
    this.#listener = listener;
  }

  hash(): string {
    return hashState(this.#state);
  }

  /** Notes that the current state has been saved. */
  saved(): void {
    this.#customPatch = [];
    this.#patchedFrom = this.#state.custom;
  }

  /** Switches to another state: one that was loaded, or the last good one after a failure. */
  reset(state: SessionState): void {
    this.#state = state;
    this.#customPatch = [];
    this.#patchedFrom = state.custom;
  }

  /** Refuses changes from now on, for this reason; the first one stands. */
  close(reason: string): void {
    this.#closed ??= reason;
  }

  /** Whether changes are refused. */
  get isClosed(): boolean {
    return this.#closed !== undefined;
  }

  addMessages(messages: readonly Message[]): void {
    this.#open();
    const parsed = messages.map((message) => parseMessage(withoutMark(message)));
    this.#set({ history: this.#state.history.append(parsed) });
    ToolEffects.of(this)?.noteMessages();
    this.#listener?.onMessages(parsed);
  }

  setMessages(messages: readonly Message[]): void {
    this.#open();
    const parsed = messages.map((message) => parseMessage(withoutMark(message)));
    this.#set({ history: this.#state.history.replace(parsed) });
    ToolEffects.of(this)?.noteMessages();
  }

  setCustom(value: unknown): void {
    this.#open();
    const custom = value === undefined ? undefined : toJson(value, 'custom state');
    const before = this.#state.custom;
    const patch: JsonPatch =
      before === undefined || custom === undefined
        ? [{ op: 'replace', path: '', value: custom ?? null }]
        : diffJson(before, custom);
    this.#changeCustom(custom, patch);
  }

  updateCustom(recipe: (draft: never) => unknown): void {
    this.#open();
    const { custom } = this.#state;
    const change = recipe as (draft: unknown) => unknown;
    const { value, patch } = produce(custom, custom === undefined ? orExplain(change) : change);
    this.#changeCustom(value, patch);
  }

  /**
   * Adds artifacts; one with the name of an existing one takes its place. Returns them as they were stored. With `quiet` the
   * listener does not hear of them. Files that they name must be `stored`, or be named by the session already.
   */
  addArtifacts(
    artifacts: readonly Artifact[],
    {
      quiet = false,
      files,
      patch,
    }: {
      readonly quiet?: boolean;
      readonly files?: 'stored';
      readonly patch?: ArtifactPatch;
    } = {},
  ): readonly Artifact[] {
    this.#open();
    const parsed = artifacts.map(parseNamed);
    if (files === 'stored') this.#noteFiles(parsed);
    else this.#checkFiles(parsed);
    const next = [...this.#state.artifacts];
    const changed: Artifact[] = [];
    for (const artifact of parsed) {
      const place =
        artifact.name === undefined ? -1 : next.findIndex((other) => other.name === artifact.name);
      const before = next[place];
      if (before === undefined) next.push(artifact);
      else {
        // Only the difference of a long text from its former version is hashed.
        carryHashes(before as unknown as Json, artifact as unknown as Json);
        next[place] = artifact;
      }
      if (before === undefined || !isSameArtifact(before, artifact)) changed.push(artifact);
    }
    this.#setArtifacts(next);
    ToolEffects.of(this)?.noteAdded(parsed);
    if (!quiet) this.#listener?.onArtifacts(changed, patch);
    return parsed;
  }

  /** The tree of the workspace; `undefined` if the state has none. */
  get tree(): string | undefined {
    return treeHashIn(this.#state.artifacts);
  }

  /** Replaces the tree of the workspace. It is no change of the handler's, so it is also made after the handler has returned. */
  setTree(hash: string | undefined): void {
    if (hash === this.tree) return;
    const artifacts = withTree(this.#state.artifacts, hash);
    this.#set({ artifacts: toJson(artifacts, 'artifacts') as unknown as readonly Artifact[] });
  }

  /** Edits the text of an artifact in place. Returns the artifact as it was stored. */
  editArtifact(name: string, edits: readonly TextEdit[]): Artifact {
    this.#open();
    const before = this.#state.artifacts.find((artifact) => artifact.name === name);
    if (before === undefined) {
      throw new WaymarkError('NOT_FOUND', `There is no artifact "${name}" in this session.`);
    }
    const { artifact, patch } = editArtifactText(before, edits);
    return this.addArtifacts([artifact], { patch })[0] ?? artifact;
  }

  setArtifacts(artifacts: readonly Artifact[]): void {
    this.#open();
    const parsed = artifacts.map(parseNamed);
    this.#checkFiles(parsed);
    const before = [...withoutTree(this.#state.artifacts)];
    const changed = parsed.filter((artifact) => {
      const place = before.findIndex((other) => isSameArtifact(other, artifact));
      if (place >= 0) before.splice(place, 1);
      return place < 0;
    });
    this.#setArtifacts(withTree(parsed, this.tree));
    ToolEffects.of(this)?.noteSet(parsed);
    this.#listener?.onArtifacts(changed);
  }

  /**
   * Refuses an artifact that names a file which the session does not have: the hash of a file, which an attacker may know, must not give
   * access to it.
   */
  #checkFiles(artifacts: readonly Artifact[]): void {
    const named = fileHashesIn(artifacts).filter((hash) => !this.#files?.has(hash));
    if (named.length === 0) return;
    const own = fileHashesIn(this.#state.artifacts);
    for (const hash of named) if (!own.includes(hash)) throw unknownFile(hash);
  }

  #noteFiles(artifacts: readonly Artifact[]): void {
    for (const hash of fileHashesIn(artifacts)) this.#files = (this.#files ?? new Set()).add(hash);
  }

  #setArtifacts(artifacts: readonly Artifact[]): void {
    this.#noteFiles(this.#state.artifacts);
    this.#set({ artifacts: toJson(artifacts, 'artifacts') as unknown as readonly Artifact[] });
  }

  #changeCustom(custom: Json | undefined, patch: JsonPatch): void {
    if (patch.length === 0) return;
    this.#set({ custom });
    this.#customPatch = joinPatches(this.#customPatch, patch);
    ToolEffects.of(this)?.noteCustom(patch);
    this.#listener?.onCustom({ patch, custom });
  }

  #set(change: Partial<SessionState>): void {
    this.#state = { ...this.#state, ...change };
  }

  #open(): void {
    if (this.#closed !== undefined) {
      throw failedPrecondition(this.#closed);
    }
  }
}

function unknownFile(hash: string): WaymarkError {
  return invalid(
    `The artifact names the file ${hash}, which this session does not have. To add a file, use session.saveFile(); for one of another session, pass it the stream of agent.openFile().`,
    { details: { file: hash } },
  );
}

/** Whether two artifacts have the same content. */
export function isSameArtifact(a: Artifact, b: Artifact): boolean {
  return a.name === b.name && jsonEqual(a as unknown as Json, b as unknown as Json);
}

/** A recipe over a state that is not there; one that writes to it gets an error that says what to do. */
function orExplain(recipe: (draft: unknown) => unknown): (draft: unknown) => unknown {
  return (draft) => {
    try {
      return recipe(draft);
    } catch (cause) {
      if (!(cause instanceof TypeError)) throw cause;
      throw failedPrecondition(
        'There is no custom state yet, so its draft is undefined. Give the agent an initialState, call setCustom first, or return the first document from the recipe.',
        { cause },
      );
    }
  };
}

function parseNamed(value: Artifact): Artifact {
  const artifact = parseArtifact(value);
  checkArtifactName(artifact.name);
  if (treeHashesIn([artifact]).length > 0) {
    throw invalid(
      'An artifact cannot name the files of a workspace. Use agent.openFile() to read one.',
    );
  }
  return artifact;
}

/**
 * The face of a working state, for handlers and tools. A class, as one is made for each turn: an object with accessors of
 * its own costs more to make, and stays in the heap until the next full collection with all that it can reach.
 */
export class SessionFace<Custom> implements Session<Custom> {
  readonly #id: () => string;
  readonly #working: WorkingState;
  readonly #snapshotIds: readonly string[];
  readonly #checkCustom: (custom: unknown) => unknown;
  readonly #files: (() => SessionFiles) | undefined;

  constructor(options: {
    readonly id: () => string;
    readonly working: WorkingState;
    readonly snapshotIds: readonly string[];
    /** Checks a custom state that is set as a whole. */
    readonly checkCustom: (custom: unknown) => unknown;
    /** Made when it is needed. @default the session keeps no files */
    readonly files?: () => SessionFiles;
  }) {
    this.#id = options.id;
    this.#working = options.working;
    this.#snapshotIds = options.snapshotIds;
    this.#checkCustom = options.checkCustom;
    this.#files = options.files;
  }

  get id(): string {
    return this.#id();
  }

  get state(): State {
    return toPlainState(this.#working.state, { sessionId: this.#id() });
  }

  get messages(): readonly Message[] {
    return this.#working.state.history.messages;
  }

  get custom(): Session<Custom>['custom'] {
    return this.#working.state.custom as Session<Custom>['custom'];
  }

  get artifacts(): readonly Artifact[] {
    return withoutTree(this.#working.state.artifacts);
  }

  get snapshotIds(): readonly string[] {
    return [...this.#snapshotIds];
  }

  addMessages(...messages: Message[]): void {
    checkVariadic(messages, 'addMessages');
    this.#working.addMessages(messages);
  }

  setMessages(messages: readonly Message[]): void {
    this.#working.setMessages(messages);
  }

  setCustom(custom: Session<Custom>['custom']): void {
    this.#working.setCustom(this.#checkCustom(custom));
  }

  updateCustom(recipe: Parameters<Session<Custom>['updateCustom']>[0]): void {
    this.#working.updateCustom(recipe as (draft: never) => unknown);
  }

  addArtifacts(...artifacts: Artifact[]): void {
    checkVariadic(artifacts, 'addArtifacts');
    this.#working.addArtifacts(artifacts);
  }

  editArtifact(name: string, edits: readonly TextEdit[]): Artifact {
    return this.#working.editArtifact(name, edits);
  }

  setArtifacts(artifacts: readonly Artifact[]): void {
    this.#working.setArtifacts(artifacts);
  }

  async saveFile(file: NewFile): Promise<Artifact> {
    return await this.#filesOrThrow().save(file);
  }

  async openFile(name: string, options?: OpenFileOptions): Promise<OpenedFile> {
    return await this.#filesOrThrow().open(name, options);
  }

  #filesOrThrow(): SessionFiles {
    if (this.#files !== undefined) return this.#files();
    throw failedPrecondition(
      'This session is only for trying a tool and keeps no files. Run a turn of the agent instead.',
    );
  }
}
