import { interruptsAtEnd } from '../api/interrupts.ts';
import type { AgentTypes, ChunkOf } from '../api/types.ts';
import type { ErrorBody } from '../core/error.ts';
import type { Json } from '../core/json/json.ts';
import { applyKnownPatch, type JsonPatch } from '../core/json/patch.ts';
import { patchArtifact } from '../protocol/artifacts.ts';
import type { Message } from '../protocol/message.ts';
import type { Artifact } from '../protocol/state.ts';
import type { Chunk, Reset } from '../protocol/turn.ts';
import type { WaitingInterrupt } from './interrupts.ts';
import { LiveTurn, SubAgents, steeredId } from './live-turn.ts';
import { MessageViews } from './message-view.ts';
import { type SessionData, sessionDataOf } from './session-data.ts';
import type { AgentView } from './view.ts';

/** The part of a view that does not follow from the messages, of a conversation in which nothing has happened. */
const noFacts = {
  phase: 'ready',
  title: undefined,
  running: undefined,
  status: undefined,
  finishReason: undefined,
  usage: undefined,
  output: undefined,
  error: undefined,
  steering: [],
  takeovers: 0,
  timeline: [],
  hasEarlierSnapshots: false,
  past: undefined,
} satisfies Partial<AgentView>;

export type Facts<Types extends AgentTypes> = Pick<AgentView<Types>, keyof typeof noFacts>;

/** The saved part of a conversation, the turn that runs on top of it, and the view of both. Does no I/O. */
export class Conversation<Types extends AgentTypes> {
  sessionData: SessionData<Types>;
  /** Whether `sessionData` is the session's head, as far as is known. */
  atHead = true;
  #live: LiveTurn | undefined;
  #sessionId: string | undefined;
  // Including the changes of the running turn so far.
  #custom: Types['custom'] | undefined;
  #artifacts: readonly Artifact[];
  #subAgents = new SubAgents();
  #interrupts: readonly WaitingInterrupt[] = [];
  readonly #messageViews = new MessageViews();
  #facts: Facts<Types>;
  #view: AgentView<Types>;

  constructor(sessionData: SessionData<Types>, facts: Partial<Facts<Types>>) {
    this.sessionData = sessionData;
    this.#sessionId = sessionData.sessionId;
    this.#custom = sessionData.custom;
    this.#artifacts = sessionData.artifacts;
    this.#facts = { ...noFacts, ...facts };
    this.#interrupts = interruptsAtEnd(sessionData.messages);
    this.#view = this.#build();
  }

  /** The present view: a new object when anything in it is new. */
  get view(): AgentView<Types> {
    const next = this.#build();
    if (!isSameView(next, this.#view)) this.#view = next;
    return this.#view;
  }

  /** The messages that are not saved: the input, and the answer to it. */
  get unsaved(): readonly Message[] {
    return this.#live?.messages ?? [];
  }

  set(change: Partial<Facts<Types>>): void {
    this.#facts = { ...this.#facts, ...change };
  }

  /** Shows something saved, and drops the turn that ran on top of the previous one. */
  settle(
    sessionData: SessionData<Types>,
    { atHead = true }: { readonly atHead?: boolean } = {},
  ): void {
    const isReadAgain =
      this.#facts.phase === 'loading' && sessionData.messages === this.sessionData.messages;
    this.sessionData = sessionData;
    this.atHead = atHead;
    this.#sessionId = sessionData.sessionId;
    this.#live = undefined;
    // If so, keep the answers that were given so far.
    if (!isReadAgain) this.#interrupts = interruptsAtEnd(sessionData.messages);
    this.#revert();
  }

  /** Adds earlier messages in front of those that were loaded. */
  extend(earlier: readonly Message[], from: number): void {
    const { messages } = this.sessionData;
    this.sessionData = { ...this.sessionData, messages: [...earlier, ...messages], from };
  }

  leave(sessionId: string | undefined): void {
    this.#facts = noFacts;
    this.settle(sessionDataOf({ sessionId }));
  }

  begin(sent: readonly Message[]): void {
    this.#live = new LiveTurn(sent);
    this.#revert();
    this.set({
      phase: 'sending',
      status: undefined,
      finishReason: undefined,
      usage: undefined,
      output: undefined,
      takeovers: 0,
      steering: [],
    });
  }

  /** The turn was not saved. Its messages stay visible until the next turn. */
  fail(error: ErrorBody | undefined): void {
    this.#interrupts = interruptsAtEnd(this.sessionData.messages);
    this.#revert();
    this.set({ phase: 'ready', running: undefined, error });
  }

  fold(chunk: ChunkOf<Types>): void {
    const { artifact, artifactPatch: patch } = chunk;
    const named = patch && this.#artifacts.find(({ name }) => name === patch.name);
    const edited = artifact ?? (patch && patchArtifact(named, patch));
    if (edited) this.#artifacts = withArtifact(this.#artifacts, edited);
    if (chunk.agent !== undefined) {
      // Statuses are JSON: they can be sent to clients.
      this.#subAgents.fold(chunk.agent, chunk as Chunk);
      return;
    }
    const { turnStart, modelChunk, status, customPatch, steered, reset, turnEnd } = chunk;
    this.#live ??= new LiveTurn();
    if (reset) this.takenOver(reset);
    if (turnStart) {
      this.#sessionId = turnStart.sessionId;
      this.#live.start(turnStart.turnIndex);
      // A run that is followed keeps its own id, whichever of its turns begins.
      this.set({ phase: 'running', running: this.#facts.running ?? turnStart.snapshotId });
    }
    if (modelChunk) {
      // The agent continues, so the sub-agents that it called have answered.
      if (modelChunk.role !== 'tool') this.#subAgents = new SubAgents();
      this.#live.add(modelChunk);
    }
    if (steered) {
      this.#live.steer(steered);
      this.unsteer(steeredId(steered));
    }
    if (status !== undefined) this.set({ status });
    if (customPatch) {
      const patched = applyKnownPatch((this.#custom ?? null) as Json, customPatch as JsonPatch);
      this.#custom = patched as Types['custom'];
    }
    if (turnEnd) {
      const { finishReason, usage, output } = turnEnd;
      this.set({ finishReason, usage, output: output as Types['output'] });
    }
  }

  /** Notes a message that is on its way to the running turn. */
  steer(message: Message): void {
    this.set({ steering: [...this.#facts.steering, message] });
  }

  /** The turn has taken the message, or refused it. */
  unsteer(id: string | undefined): void {
    this.set({ steering: this.#facts.steering.filter((message) => steeredId(message) !== id) });
  }

  takenOver(reset: Reset): void {
    this.#live?.reset(reset);
    this.#subAgents = new SubAgents();
    this.set({ takeovers: this.#facts.takeovers + 1 });
  }

  setInterrupts(interrupts: readonly WaitingInterrupt[]): void {
    this.#interrupts = interrupts;
  }

  #revert(): void {
    this.#subAgents = new SubAgents();
    this.#custom = this.sessionData.custom;
    this.#artifacts = this.sessionData.artifacts;
  }

  #build(): AgentView<Types> {
    const { sessionData } = this;
    const { phase } = this.#facts;
    // The user may be writing an answer while the session is read again.
    const isAsking = phase === 'ready' || phase === 'loading';
    const interrupts = isAsking ? this.#interrupts : none;
    const transcript = this.#transcript();
    const { from } = sessionData;
    const open = { running: !isAsking, interrupts };
    const messages = this.#messageViews.of(transcript, open, from);
    const isAnswering = phase !== 'ready' && this.#live?.answer !== undefined;
    const last = messages.at(-1);
    const answer = isAnswering && last?.index === from + transcript.length - 1 ? last : undefined;
    return {
      ...this.#facts,
      sessionId: this.#sessionId,
      snapshotId: sessionData.snapshotId,
      messages,
      transcript,
      earlier: from,
      answer,
      text: answer?.text ?? '',
      custom: this.#custom,
      artifacts: this.#artifacts,
      subAgents: this.#subAgents.views,
      interrupts,
    };
  }

  #joined:
    | { sessionData: readonly Message[]; live: readonly Message[]; all: readonly Message[] }
    | undefined;

  #transcript(): readonly Message[] {
    const sessionData = this.sessionData.messages;
    const live = this.unsaved;
    if (live.length === 0) return sessionData;
    if (this.#joined?.sessionData !== sessionData || this.#joined.live !== live) {
      this.#joined = { sessionData, live, all: [...sessionData, ...live] };
    }
    return this.#joined.all;
  }
}

const none: readonly WaitingInterrupt[] = [];

function withArtifact(artifacts: readonly Artifact[], artifact: Artifact): readonly Artifact[] {
  const place =
    artifact.name === undefined ? -1 : artifacts.findIndex(({ name }) => name === artifact.name);
  return place === -1 ? [...artifacts, artifact] : artifacts.with(place, artifact);
}

function isSameView<View extends object>(a: View, b: View): boolean {
  const keys = Object.keys(a) as (keyof View)[];
  return keys.every((key) => Object.is(a[key], b[key]));
}
