import type { Channel } from '../../core/async/channel.ts';
import { Mutex } from '../../core/async/mutex.ts';
import { type LinkedSignal, linkSignals } from '../../core/async/signal.ts';
import { toWaymarkError, WaymarkError } from '../../core/error.ts';
import type { Json, JsonObject } from '../../core/json/json.ts';
import { callContext } from '../../generate/hooks.ts';
import type { ModelRef } from '../../generate/model.ts';
import { PartialAnswer } from '../../generate/partial-answer.ts';
import type { Message } from '../../protocol/message.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { Chunk, FinishReason, Init, Input, Output, Usage } from '../../protocol/turn.ts';
import { sessionKey } from '../../session/session.ts';
import { hashState, type SessionState } from '../../session/session-state.ts';
import { WorkingState } from '../../session/working-state.ts';
import type { RunMode, Scope, Spent, StateBase, Totals } from '../../store/contract/store.ts';
import type { QueueOptions } from '../define/dispatcher.ts';
import type { EventLog } from '../persistence/event-log.ts';
import { completeReceipt, type Receipt } from '../persistence/receipt.ts';
import { createChunkTransform } from '../persistence/transform.ts';
import type { TurnBase } from '../persistence/turn-store.ts';
import type { AgentResult, AgentSession, TurnFunction } from '../spec/handler.ts';
import { freshState } from '../spec/init.ts';
import { isInputError } from '../spec/input.ts';
import { type HandlerResult, outputOf, parseResult } from '../spec/output.ts';
import { type AgentHost, type AgentSpec, scopeOf } from '../spec/spec.ts';
import { acceptTurn, claimDetached, type KnownInput } from './accept-turn.ts';
import { InvocationSession } from './agent-session.ts';
import { streamsArtifact } from './artifact-chunks.ts';
import { ChunkSink } from './chunk-sink.ts';
import { detachedOutput } from './detach.ts';
import { Failures } from './failures.ts';
import { finishInvocation } from './finish-turn.ts';
import { closedError, Inbox, type QueuedInput } from './inbox.ts';
import { invocationKey } from './invocation-context.ts';
import { inInvocationSpan } from './invocation-span.ts';
import { detachedBefore, joinRun } from './join.ts';
import { openSession } from './open-session.ts';
import { createResponder } from './responder.ts';
import { runTurn } from './run-turn.ts';
import { StopControl } from './stop-control.ts';
import { handlerStopTimeoutMs, StopTimeoutError, withStopTimeout } from './stop-timeout.ts';
import type { Outcome, Turn } from './turn-state.ts';

/** What an invocation is asked to do. */
export interface InvocationRequest {
  readonly init: Init;
  /** The head that the session must have when the first turn is claimed; `null`: none. */
  readonly ifHead?: string | null;
  readonly owner?: string;
  readonly mode: Exclude<RunMode, 'detached'>;
  readonly context: JsonObject;
  readonly model?: ModelRef;
  readonly signal?: AbortSignal;
  readonly startedBy?: SessionInfo['startedBy'];
  /** Input and state come from a remote client. */
  readonly remote?: boolean;
  readonly queue?: QueueOptions;
  /** Where the chunks go; nobody listens to a run that was taken over. */
  readonly caller?: Channel<Chunk>;
}

/** The run that is being worked on: one per turn, or one for all that was queued when the caller detached. */
export interface ActiveRun {
  readonly runId: string;
  readonly turnBase: TurnBase;
  readonly log: EventLog;
  /** Takes it off the list of runs whose claims are kept alive. */
  readonly stopHeartbeat: () => void;
  /** The idempotency keys that it was claimed under. */
  readonly keys: readonly string[];
  /** For a detached run: how many of its inputs are done, whether nobody has to go on with it, and why it could not be ended. */
  detached?: { inputsDone: number; over?: boolean; trouble?: unknown };
  /** Hears of each new checkpoint and durable step. */
  onProgress?: () => void;
}

/** One connection to an agent: an init, turns, an output. Its parts (begin, perform, save, finish) are functions over it. */
export class Invocation {
  readonly spec: AgentSpec;
  readonly host: AgentHost;
  readonly request: InvocationRequest;
  readonly scope: Scope;
  readonly control: StopControl = new StopControl();
  readonly inbox: Inbox = new Inbox();
  readonly partial: PartialAnswer = new PartialAnswer();
  readonly failures: Failures = new Failures(this);
  readonly snapshotIds: string[] = [];
  /** The snapshot that a failed turn was kept as. */
  failedId: string | undefined;
  readonly working: WorkingState;
  readonly chunkSink: ChunkSink;
  readonly session: AgentSession;

  sessionId: string;
  run: ActiveRun | undefined;
  turn: Turn | undefined;
  /** A turn that was begun before the handler, so that the handler finds its state. */
  #prepared: Turn | undefined;
  /** The snapshot that the init named, as it was loaded. */
  opened: StateBase | undefined;
  /** What was saved last. */
  base: StateBase | undefined;
  /** The id that the next snapshot hangs on. */
  parentId: string | undefined;
  /** The last snapshot on the way here, with its content. */
  lastSnapshot:
    | { readonly id: string; readonly hash: string; readonly state: SessionState }
    | undefined;
  /** The state that the session goes on from when the running turn fails. */
  good: SessionState;
  /** The snapshot with that state, if it is one. */
  goodId: string | undefined;
  totals: Totals | undefined;
  turnIndex = -1;
  turnsBegun = 0;
  /** How many snapshots the invocation had when the running turn began. */
  turnSnapshots = 0;
  /** The output of the last turn, when another process or an earlier request has worked on it. */
  followed: Output | undefined;
  /** What the last run under a request id was said to come to. */
  receipt: { readonly run: ActiveRun; readonly told: Receipt; readonly from: number } | undefined;
  /** The index that the next snapshot will have. */
  nextIndex = 0;
  usage: Usage = {};
  /** What attempts before this one have used in the turn that it begins with. */
  spentBefore: Spent | undefined;
  last: { readonly finishReason: FinishReason; readonly output?: Json } | undefined;
  failure: WaymarkError | undefined;
  /** Whether the failed run is kept in the dead-letter list. */
  deadLetter = false;
  readonly #gate = new Mutex();
  #absorbed = 0;
  #isLooping = false;
  #refusal: unknown;
  #openError: unknown;
  /** No turn begins any more, and nobody detaches. */
  #over = false;
  /** What the caller was told when the run went to another process. */
  #away: Output | undefined;
  #leaving: LinkedSignal | undefined;

  constructor(spec: AgentSpec, host: AgentHost, request: InvocationRequest) {
    this.spec = spec;
    this.host = host;
    this.request = request;
    this.scope = scopeOf(spec, request.owner);
    this.sessionId = request.init.sessionId ?? host.newId();
    this.good = freshState(spec);
    this.working = new WorkingState(this.good);
    this.chunkSink = new ChunkSink({
      caller: request.caller,
      leave: createChunkTransform(spec.transform, () => this.working.state.custom),
      signal: this.control.signal,
    });
    this.session = new InvocationSession(this, (fn) => this.#loop(fn));
    this.#listen();
    this.control.signal.addEventListener('abort', () => this.inbox.clear(), { once: true });
    this.control.follow(request.signal);
  }

  /** Runs from the opening to the end, and gives the output. Rejects when it could not be started, or an input was refused. */
  async execute(): Promise<Output> {
    const stayOpen = this.inbox.closeWith(this.host.closing);
    try {
      await this.locked(() => this.#open());
      this.#prepared = await this.#accept();
      if (this.#away !== undefined) return this.#away;
      if (this.#prepared === undefined && this.followed !== undefined) return this.followed;
      // Nothing is traced of a connection that never had an input.
      return await (this.#prepared === undefined ? this.#handle() : this.#traced());
    } finally {
      stayOpen();
      this.closeSession();
      this.inbox.clear();
      this.control.unfollow();
      this.#leaving?.release();
    }
  }

  /** Aborts when the caller no longer waits for the end of what it asked for. */
  get leaving(): AbortSignal {
    this.#leaving ??= linkSignals(this.request.signal);
    if (this.control.cause?.kind === 'stop') this.#leaving.abort();
    return this.#leaving.signal;
  }

  /** Goes on with a run that was begun elsewhere. */
  async resume(turn: Turn | undefined): Promise<Output> {
    this.#prepared = turn;
    try {
      return await this.#traced();
    } finally {
      this.closeSession();
    }
  }

  /** Goes on without the caller. */
  async detach(input?: Input): Promise<Output> {
    const own = input?.message === undefined && input?.resume === undefined ? [] : [input];
    // What is sent from now on is none of its inputs.
    const release = this.inbox.hold(own.length);
    try {
      return await this.locked(async () => {
        if (this.#openError !== undefined) throw this.#openError;
        if (this.#over) throw closedError();
        const place = await claimDetached(this, own);
        const output =
          typeof place === 'object' ? detachedBefore(this, place.join) : detachedOutput(this);
        if (place !== 'here') this.#leave(output);
        else this.inbox.end(own);
        this.control.unfollow();
        this.chunkSink.disconnect();
        return output;
      });
    } finally {
      release();
    }
  }

  /** Somebody else works on the run: nothing of it is left here. */
  #leave(output: Output): void {
    this.#away = output;
    this.run = undefined;
    this.control.markLost();
  }

  /** Stops what the caller waits for; a run that goes on without it is stopped by its id. */
  stop(reason?: unknown): void {
    if (this.run?.detached !== undefined) return;
    this.control.stop(reason);
    this.#leaving?.abort(reason);
  }

  /** The turn to work on: the one that was begun already, or that of the next input. */
  async nextTurn(): Promise<Turn | undefined> {
    const prepared = this.#prepared;
    this.#prepared = undefined;
    return prepared ?? (await this.#accept());
  }

  /** Adds the messages that a generate call has come to, those it was not given before. */
  appendGenerated(messages: readonly Message[]): void {
    if (this.spec.recovery !== 'checkpoint') return;
    const fresh = messages.slice(this.#absorbed);
    this.#absorbed = messages.length;
    if (fresh.length > 0) this.working.addMessages(fresh);
  }

  /** Begins a turn with nothing absorbed. */
  clearTurn(turn: Turn): void {
    this.turn = turn;
    this.#absorbed = 0;
    this.partial.clear();
    this.failures.clear();
  }

  /** One thing at a time: beginning a turn, saving it, detaching. */
  locked<Value>(fn: () => Promise<Value>): Promise<Value> {
    return this.#gate.run(fn);
  }

  /** Nothing that the handler still does changes anything from now on. */
  leaveBehind(): void {
    this.working.close(
      'The turn was stopped and has ended: nothing can be changed by it any more.',
    );
  }

  /** Refuses changes once the handler has returned: nothing would save them. */
  closeSession(): void {
    this.working.close(
      'The session cannot be changed: its invocation has ended. Change it inside the handler or a tool, and await what does.',
    );
  }

  async #open(): Promise<void> {
    try {
      await openSession(this);
    } catch (error) {
      this.#openError = error;
      throw error;
    }
  }

  /** Accepts the next input; `undefined` when none comes any more, or it was stopped before it was accepted. */
  async #accept(): Promise<Turn | undefined> {
    while ((await this.inbox.peek()) !== undefined) {
      const begun = await this.locked(async () => {
        const queued = this.inbox.take();
        return queued && (await this.#begin(queued));
      });
      if (begun === undefined) continue;
      if (!('join' in begun)) {
        this.followed = undefined;
        return begun;
      }
      const output = await joinRun(this, begun.input, begun.join);
      if (output === undefined) this.inbox.putBack(begun.input);
      else this.followElsewhere(output);
    }
    return undefined;
  }

  /** An answer that fits no interrupt is refused to the sender who waits for it; the connection stays open for another one. */
  async #begin({ input, answer }: QueuedInput): Promise<Turn | KnownInput | undefined> {
    try {
      const turn = await acceptTurn(this, input);
      answer?.accept();
      return turn;
    } catch (error) {
      const isSenders = this.run?.detached === undefined && isInputError(error);
      answer?.refuse(error);
      if (answer !== undefined && isSenders) return undefined;
      throw error;
    }
  }

  /** Takes the output of a turn that somebody else has worked on; the session is read again before the next turn. */
  followElsewhere(output: Output): void {
    this.followed = output;
    this.sessionId = output.sessionId;
    this.opened = undefined;
    this.base = undefined;
    if (output.error !== undefined) this.inbox.clear();
  }

  /** Goes to a state that was loaded. */
  setState(state: SessionState): void {
    this.working.reset(state);
    this.good = state;
  }

  #traced(): Promise<Output> {
    return inInvocationSpan(this, () => this.#handle());
  }

  async #handle(): Promise<Output> {
    const { spec, request, session } = this;
    const io = {
      respond: createResponder(this),
      signal: this.control.signal,
      context: request.context,
      init: request.init,
      ...(request.model !== undefined && { model: request.model }),
    };
    let result: HandlerResult | undefined;
    try {
      const work = sessionKey.run(session, () =>
        invocationKey.run(this, () =>
          callContext.run(request.context, async () => spec.handler(session, io)),
        ),
      );
      const given = await withStopTimeout(this, work, handlerStopTimeoutMs);
      result = parseResult(given ?? undefined);
    } catch (error) {
      if (error instanceof StopTimeoutError) this.leaveBehind();
      else if (this.#isFirstFault()) this.#fail(error);
    }
    // Whoever is detaching at this moment still comes first; nobody does after it.
    await this.locked(async () => {
      this.#over = true;
    });
    if (this.#refusal !== undefined) {
      if (this.run?.detached === undefined) throw this.#refusal;
      // Nobody waits for a detached run: it ends as a failed one.
      this.#fail(this.#refusal);
    }
    await finishInvocation(this, result?.finishReason);
    if (this.followed !== undefined) return this.followed;
    if (this.receipt !== undefined) await completeReceipt(this, result);
    return invocationKey.run(this, () => outputOf(this, result));
  }

  /** Whether what the handler throws is news: not the end of a turn that has failed, was refused or was stopped. */
  #isFirstFault(): boolean {
    const { control, failure } = this;
    return control.cause === undefined && failure === undefined && this.#refusal === undefined;
  }

  #fail(error: unknown): void {
    this.failure = toWaymarkError(error);
    this.failures.report(this.failure, 'turn');
  }

  async #loop(fn: TurnFunction): Promise<void> {
    if (this.#isLooping) {
      throw new WaymarkError(
        'FAILED_PRECONDITION',
        'The turn loop is running already: a session works on one input at a time. Call session.run once, or await the first call.',
      );
    }
    this.#isLooping = true;
    try {
      await this.#turns(fn);
    } finally {
      this.#isLooping = false;
    }
  }

  async #turns(fn: TurnFunction): Promise<void> {
    for (;;) {
      const turn = await this.nextTurn().catch((error: unknown) => {
        // Refused before the turn began: the caller's mistake, not a failed turn.
        this.#refusal = error;
        throw error;
      });
      if (turn === undefined || this.#ended(await runTurn(this, turn, fn))) return;
    }
  }

  #ended(outcome: Outcome): boolean {
    switch (outcome.kind) {
      case 'done':
        return false;
      case 'failed':
        this.inbox.clear();
        this.failure = outcome.error;
        throw outcome.error;
      case 'stopped':
      case 'lost':
        return true;
      case 'elsewhere':
        this.followElsewhere(outcome.output);
        return outcome.output.error !== undefined || this.control.cause !== undefined;
    }
  }

  /** The default result. */
  result(): AgentResult {
    const { history, artifacts } = this.working.state;
    const message = history.at(-1);
    return { ...(message && { message }), artifacts };
  }

  #listen(): void {
    this.working.listen({
      onMessages: (messages) => {
        if (messages.some(({ role }) => role === 'model')) this.partial.clear();
      },
      onArtifacts: (artifacts) => {
        const { turn } = this;
        if (turn === undefined) return;
        for (const artifact of artifacts) {
          if (streamsArtifact(turn, artifact)) this.chunkSink.push({ artifact });
        }
      },
      onCustom: ({ patch, custom }) => {
        const { turn } = this;
        if (turn === undefined) return;
        const whole = { op: 'replace', path: '', value: custom ?? null } as const;
        this.chunkSink.push({ customPatch: turn.customSent ? [...patch] : [whole] });
        turn.customSent = true;
      },
    });
  }

  /** The hash of what was saved last. */
  savedHash(): string | undefined {
    return this.base && hashState(this.base.state);
  }
}
