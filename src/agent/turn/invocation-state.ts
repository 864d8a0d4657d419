import { Mutex } from '../../core/async/promises.ts';
import { type LinkedSignal, linkSignals } from '../../core/async/signal.ts';
import { originalOf, type WaymarkError } from '../../core/error.ts';
import { defined, type Json, type JsonObject } from '../../core/json/json.ts';
import type { Model, ModelRef } from '../../generate/model.ts';
import { withoutTree } from '../../protocol/artifacts.ts';
import { scopeOf } from '../../protocol/ids.ts';
import { PartialAnswer } from '../../protocol/messages.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { FinishReason, Init, Output, Usage } from '../../protocol/turn.ts';
import type { Totals } from '../../protocol/usage.ts';
import { isSameState } from '../../session/session-state.ts';
import { WorkingState } from '../../session/working-state.ts';
import type { RunMode, Scope, Spent } from '../../store/contract/store.ts';
import type { QueueOptions } from '../contract/dispatcher.ts';
import { causesOf, type ErrorInfo, isReported, markReported } from '../contract/error-reports.ts';
import type { AgentResult } from '../contract/handler.ts';
import type { AgentSpec, Transform } from '../contract/spec.ts';
import type { TurnMemory } from '../memory/turn-memory.ts';
import type { CallerCursor } from '../persistence/caller-cursor.ts';
import type { AgentHost } from '../persistence/host.ts';
import type { Receipt } from '../persistence/receipt.ts';
import { completeTransform, createChunkTransform } from '../persistence/transform.ts';
import { ChunkSink } from './chunks.ts';
import { Inbox } from './inputs.ts';
import { Spending } from './limits.ts';
import { adviseFrozen, StopControl } from './stop.ts';
import {
  type ActiveRun,
  endedElsewhere,
  type Lineage,
  startedWith,
  type Turn,
  type TurnFiles,
} from './turn-state.ts';

export interface InvocationRequest {
  readonly init: Init;
  /** The head that the session must have when the first turn is claimed; `null`: none. */
  readonly ifHead?: string | null | undefined;
  readonly owner?: string | undefined;
  readonly mode: Exclude<RunMode, 'detached'>;
  readonly context: JsonObject;
  readonly model?: ModelRef | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly startedBy?: SessionInfo['startedBy'] | undefined;
  /** The invocation that this one works for as a sub-agent: what it uses, the other has used. */
  readonly parent?: InvocationState | undefined;
  readonly remote?: boolean | undefined;
  readonly queue?: QueueOptions | undefined;
  /** Reads the chunks; absent for a run that was taken over. */
  readonly caller?: CallerCursor | undefined;
}

interface Position {
  sessionId: string;
  turnIndex: number;
  nextIndex: number;
  /** The session's usage; kept only where the agent limits it. */
  totals: Totals | undefined;
}

interface Progress {
  turnsBegun: number;
  /** The snapshots of this invocation, in order. */
  readonly snapshotIds: string[];
  /** How many of them there were when the running turn began. */
  turnSnapshots: number;
  usage: Usage;
  /** Usage of earlier attempts at the turn that this invocation starts with. */
  spentBefore: Spent | undefined;
}

interface Ending {
  last: { readonly finishReason: FinishReason; readonly output?: Json } | undefined;
  failure: WaymarkError | undefined;
  /** The snapshot that keeps the state of a failed turn. */
  failedId: string | undefined;
  /** Whether the failed run goes to the dead-letter queue. */
  deadLetter: boolean;
  /** The output of the last turn, when another process or an earlier request worked on it. */
  followed: Output | undefined;
  /** The receipt that was recorded for the request id of the last turn. */
  receipt: { readonly run: ActiveRun; readonly told: Receipt; readonly from: number } | undefined;
}

/**
 * The state of one connection to an agent. The steps of a turn (`accept`, `run`, `finish`) are functions over it; `invocation.ts`
 * calls them in order.
 */
export class InvocationState {
  readonly spec: AgentSpec;
  readonly host: AgentHost;
  readonly request: InvocationRequest;
  readonly scope: Scope;

  readonly control: StopControl = new StopControl();
  readonly inbox: Inbox = new Inbox();
  readonly working: WorkingState;
  /** The agent's transform; its errors are reported as failures of this invocation. */
  readonly transform: Transform;
  readonly chunkSink: ChunkSink;
  readonly failures: Failures;
  /** The model's answer in the running turn so far, in case it is stopped. */
  readonly partial: PartialAnswer = new PartialAnswer();

  /** The model that was called last, for traces. */
  lastModel: Model | undefined;
  /** Spend that is not recorded yet; a sub-agent shares it with the invocation that it works for. */
  readonly spending: Spending;
  readonly position: Position;
  readonly progress: Progress;
  readonly ending: Ending;
  lineage: Lineage;
  run: ActiveRun | undefined;
  turn: Turn | undefined;
  /** The files of the running turn, if the agent has a workspace. */
  files: TurnFiles | undefined;
  /** Memory, as the last run that used it sees it. */
  memory: { readonly run: ActiveRun; readonly of: TurnMemory } | undefined;

  readonly #mutex = new Mutex();
  #hasEnded = false;
  #started: PromiseWithResolvers<string | undefined> | undefined;
  #callerGone: LinkedSignal | undefined;

  constructor(spec: AgentSpec, host: AgentHost, request: InvocationRequest) {
    this.spec = spec;
    this.host = host;
    const { testModel } = spec;
    this.request =
      testModel === undefined ? request : { ...request, model: request.model ?? testModel };
    this.scope = scopeOf(spec, request.owner);
    this.position = {
      sessionId: request.init.sessionId ?? host.newId(),
      turnIndex: -1,
      nextIndex: 0,
      totals: undefined,
    };
    this.progress = {
      turnsBegun: 0,
      snapshotIds: [],
      turnSnapshots: 0,
      usage: {},
      spentBefore: undefined,
    };
    this.spending =
      request.parent?.spending.store === undefined
        ? new Spending(spec.store?.spend, () => ({
            ...this.scope,
            sessionId: this.position.sessionId,
          }))
        : request.parent.spending;
    this.ending = {
      last: undefined,
      failure: undefined,
      failedId: undefined,
      deadLetter: false,
      followed: undefined,
      receipt: undefined,
    };
    this.lineage = startedWith(spec.freshState);
    this.working = new WorkingState(this.lineage.fallbackState);
    this.failures = new Failures((error, info) =>
      host.report(error, { ...info, ...this.#errorPlace() }),
    );
    this.transform = completeTransform(
      spec.ownTransform,
      (error) => this.failures.report(error, 'transform'),
      spec.initialState,
    );
    this.chunkSink = new ChunkSink({
      caller: request.caller,
      leave: createChunkTransform(this.transform, () => this.working.state.custom),
      signal: this.control.signal,
    });
    this.control.onStop(() => this.inbox.clear());
    this.control.follow(request.signal);
  }

  /** Runs one step at a time: accepting a turn, saving it, detaching. */
  locked<Value>(fn: () => Promise<Value>): Promise<Value> {
    return this.#mutex.run(fn);
  }

  /** Calls back when no step runs any more. */
  afterLocked(callback: () => void): void | Promise<void> {
    return this.#mutex.after(callback);
  }

  moveTo(lineage: Lineage): void {
    this.lineage = lineage;
    this.working.reset(lineage.fallbackState);
  }

  /** Drops what the running turn has changed. */
  fallBack(): void {
    this.working.reset(this.lineage.fallbackState);
  }

  /**
   * The model of the call, for the generate calls of a custom handler that name none. A prompt agent passes it to its own call;
   * the calls of its middleware and its summaries are not part of what the caller overrides.
   */
  get handlerModel(): ModelRef | undefined {
    return this.spec.withChanges === undefined ? this.request.model : undefined;
  }

  startTurn(turn: Turn): void {
    this.turn = turn;
    this.position.turnIndex = turn.info.turnIndex;
    this.progress.turnsBegun++;
    this.#resolveStarted(this.run?.runId);
    this.progress.turnSnapshots = this.progress.snapshotIds.length;
    this.partial.clear();
    this.failures.clear();
  }

  /** The id of the running turn's run, or of the next one's; `undefined` once no more turns come. */
  get started(): Promise<string | undefined> {
    if (this.turn !== undefined) return Promise.resolve(this.run?.runId);
    if (this.#hasEnded) return Promise.resolve(undefined);
    this.#started ??= Promise.withResolvers();
    return this.#started.promise;
  }

  #resolveStarted(runId: string | undefined): void {
    this.#started?.resolve(runId);
    this.#started = undefined;
  }

  /** Takes the output of a turn that another worker ended. The session is read again before the next turn. */
  followElsewhere(output: Output): void {
    this.ending.followed = output;
    this.position.sessionId = output.sessionId;
    this.lineage = endedElsewhere(this.lineage);
    if (output.error !== undefined) this.inbox.clear();
  }

  result(): AgentResult {
    const { history, artifacts } = this.working.state;
    const message = history.at(-1);
    const shown = artifacts.length === 0 ? artifacts : withoutTree(artifacts);
    return { ...(message && { message }), artifacts: shown };
  }

  hasUnsaved(): boolean {
    const { savedBase } = this.lineage;
    return savedBase === undefined || !isSameState(savedBase.state, this.working.state);
  }

  /** Refuses changes of a handler that did not end in time after a stop. */
  closeAfterStop(): void {
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

  /** Aborts when the caller no longer waits for the output. */
  get callerGone(): AbortSignal {
    this.#callerGone ??= linkSignals(this.request.signal);
    if (this.control.cause?.kind === 'stop') this.#callerGone.abort();
    return this.#callerGone.signal;
  }

  /** Stops what the caller waits for. A detached run is stopped by its id instead. */
  stop(reason?: unknown): void {
    if (this.run?.detached !== undefined) return;
    this.control.stop(reason);
    this.#callerGone?.abort(reason);
  }

  end(): void {
    this.#hasEnded = true;
    this.#resolveStarted(undefined);
    this.closeSession();
    this.inbox.clear();
    this.control.unfollow();
    this.#callerGone?.release();
  }

  #errorPlace(): { agent: string; sessionId: string; runId?: string; turnIndex?: number } {
    const { sessionId, turnIndex } = this.position;
    return defined({
      agent: this.spec.name,
      sessionId,
      runId: this.run?.runId,
      turnIndex: turnIndex >= 0 ? turnIndex : undefined,
    });
  }
}

type FailureInfo = Pick<ErrorInfo, 'phase' | 'tool' | 'toolSource' | 'model'>;

/**
 * Reports each failure of an invocation once, where it happens, and not again in the layers that the error passes on its
 * way out. The same error object may be thrown again, so the next turn starts without any.
 */
class Failures {
  readonly #tell: (error: unknown, info: FailureInfo) => void;
  #reported: unknown[] = [];

  constructor(tell: (error: unknown, info: FailureInfo) => void) {
    this.#tell = tell;
  }

  report(error: unknown, phase: ErrorInfo['phase'], subject: Pick<ErrorInfo, 'model'> = {}): void {
    const original = originalOf(error);
    adviseFrozen(original);
    const isKnown = isReported(error) || this.#find(error) >= 0;
    if (original !== error && typeof error === 'object' && error !== null) markReported(error);
    if (isKnown) return;
    this.#reported.push(original);
    this.#tell(original, { ...subject, phase });
  }

  /** Reports the error of a tool or tool source, which ends there: the model reads it, and the turn continues. */
  reportTool(error: unknown, subject: Pick<ErrorInfo, 'tool' | 'toolSource'>): void {
    adviseFrozen(error);
    const at = this.#find(error);
    if (at >= 0) this.#reported.splice(at, 1);
    else if (!isReported(error)) this.#tell(originalOf(error), { ...subject, phase: 'tool' });
  }

  /** Call at the start of a turn. */
  clear(): void {
    if (this.#reported.length > 0) this.#reported = [];
  }

  #find(error: unknown): number {
    if (this.#reported.length === 0) return -1;
    const chain = causesOf(error);
    return this.#reported.findIndex((each) => chain.includes(each));
  }
}
