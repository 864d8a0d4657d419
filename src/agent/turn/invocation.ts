import { failedPrecondition, hasStatus, toWaymarkError } from '../../core/error.ts';
import type { DatesAsText } from '../../core/json/dates.ts';
import { defined } from '../../core/json/json.ts';
import { generateScope } from '../../generate/hooks.ts';
import type { ToolContext } from '../../generate/tool/tool-context.ts';
import type { Message } from '../../protocol/message.ts';
import type { Input, Output } from '../../protocol/turn.ts';
import { sessionKey } from '../../session/session.ts';
import { SessionFace } from '../../session/working-state.ts';
import type { AgentResult, AgentSession, TurnFunction, UndoableStep } from '../contract/handler.ts';
import type { AgentSpec } from '../contract/spec.ts';
import { checkCustom } from '../contract/stored-state.ts';
import type { AgentHost } from '../persistence/host.ts';
import { acceptTurn, type KnownInput, openSession } from './accept.ts';
import { createResponder, streamStateChanges } from './chunks.ts';
import { detachedOutput, detachRun } from './detach.ts';
import { invocationFiles } from './files.ts';
import { finishInvocation } from './finish.ts';
import { closedError, type QueuedInput } from './inputs.ts';
import { type InvocationRequest, InvocationState } from './invocation-state.ts';
import { detachedBefore, joinRun } from './join.ts';
import { completeReceipt, type HandlerResult, outputOf, parseResult } from './output.ts';
import { runningTurn, runTurn } from './run.ts';
import { takeForHandler } from './steer.ts';
import { Steps } from './steps.ts';
import { handlerStopTimeoutMs, StopTimeoutError, withStopTimeout } from './stop.ts';
import { inInvocationSpan } from './telemetry.ts';
import { closeFiles } from './turn-files.ts';
import type { Outcome, Turn } from './turn-state.ts';

/** One connection to an agent: opens the session, accepts inputs, runs their turns, and finishes with an output. */
export class Invocation {
  readonly state: InvocationState;
  readonly #session: AgentSession;
  /** The first turn, accepted before the handler starts so that the handler finds its state. */
  #prepared: Turn | undefined;
  #openError: unknown;
  #refusal: unknown;
  #isLooping = false;
  /** From now on no turn starts, and the caller cannot detach. */
  #isOver = false;
  /** The output of a caller whose detached run went to another process. */
  #handedOver: Output | undefined;

  constructor(spec: AgentSpec, host: AgentHost, request: InvocationRequest) {
    this.state = new InvocationState(spec, host, request);
    this.#session = new InvocationSession(this.state, (fn) => this.#loop(fn));
    streamStateChanges(this.state);
  }

  get openError(): unknown {
    return this.#openError;
  }

  /** Runs from start to end, and returns the output. Rejects when it could not start, or an input was refused. */
  async execute(): Promise<Output> {
    const { state } = this;
    const stopClosing = state.inbox.closeWith(state.host.closing);
    const { init } = state.request;
    try {
      // A state or a snapshot that it names is loaded before the session is claimed.
      if ((init.state ?? init.snapshotId) !== undefined) await state.locked(() => this.#open());
      this.#prepared = await this.accept();
      if (this.#handedOver !== undefined) return this.#handedOver;
      const { followed } = state.ending;
      if (this.#prepared === undefined && followed !== undefined) return followed;
      // A connection without any input leaves no trace.
      return await (this.#prepared === undefined ? this.#run() : this.#traced());
    } finally {
      stopClosing();
      if (state.files !== undefined) await closeFiles(state, { failed: true });
      state.end();
    }
  }

  /** Continues a run that another process started. */
  async resume(turn: Turn | undefined): Promise<Output> {
    this.#prepared = turn;
    try {
      return await this.#traced();
    } finally {
      if (this.state.files !== undefined) await closeFiles(this.state, { failed: true });
      this.state.closeSession();
    }
  }

  async #open(): Promise<void> {
    try {
      await openSession(this.state);
    } catch (error) {
      this.#openError = error;
      throw error;
    }
  }

  /** Accepts the next input. `undefined`: no more inputs come, or the invocation was stopped before it accepted one. */
  async accept(): Promise<Turn | undefined> {
    const { inbox, ending } = this.state;
    while (inbox.hasNext || !inbox.closed) {
      if (!inbox.hasNext) {
        await inbox.changed();
        continue;
      }
      const accepted = await this.state.locked(async () => {
        const queued = inbox.take();
        return queued && (await this.#acceptQueued(queued));
      });
      if (accepted === undefined) continue;
      if (!('join' in accepted)) {
        ending.followed = undefined;
        return accepted;
      }
      const output = await joinRun(this.state, accepted.input, accepted.join);
      if (output === undefined) inbox.unshift(accepted.input);
      else this.state.followElsewhere(output);
    }
    return undefined;
  }

  /** Tells a sender that waits for it why an answer to an interrupt was refused. The connection stays open for another one. */
  async #acceptQueued({ input, answer }: QueuedInput): Promise<Turn | KnownInput | undefined> {
    try {
      const turn = await acceptTurn(this.state, input);
      answer?.accept();
      return turn;
    } catch (error) {
      // Refused for what it says: another one may be taken.
      const isSenders = hasStatus(error, 'INVALID_ARGUMENT', 'FAILED_PRECONDITION', 'NOT_FOUND');
      answer?.refuse(error);
      if (answer !== undefined && isSenders && this.state.run?.detached === undefined)
        return undefined;
      throw error;
    }
  }

  /** The turn that was accepted before the handler started, the first time. */
  #takePrepared(): Turn | undefined {
    const prepared = this.#prepared;
    this.#prepared = undefined;
    return prepared;
  }

  #traced(): Promise<Output> {
    return inInvocationSpan(this.state, () => this.#run());
  }

  async #run(): Promise<Output> {
    const { state } = this;
    const result = await this.#callHandler();
    // A detach that has begun still comes first.
    const wait = state.afterLocked(() => {
      this.#isOver = true;
    });
    if (wait !== undefined) await wait;
    if (this.#refusal !== undefined) {
      if (state.run?.detached === undefined) throw this.#refusal;
      // No caller waits for a detached run: it ends as a failed one.
      this.#fail(this.#refusal);
    }
    return await this.#finish(result);
  }

  async #callHandler(): Promise<HandlerResult | undefined> {
    const { state } = this;
    const { spec, request, control } = state;
    const session = this.#session;
    const io = {
      respond: createResponder(state),
      signal: control.signal,
      context: request.context,
      init: request.init,
      ...(request.model !== undefined && { model: request.model }),
    };
    try {
      const work = sessionKey.run(session, () =>
        generateScope.run({ context: request.context, model: state.handlerModel }, async () =>
          spec.handler(session, io, () => runningTurn(state)),
        ),
      );
      const given = await withStopTimeout(state, work, handlerStopTimeoutMs);
      return parseResult(given ?? undefined);
    } catch (error) {
      if (error instanceof StopTimeoutError) state.closeAfterStop();
      else if (this.#isFirstFailure()) this.#fail(error);
      return undefined;
    }
  }

  /** Runs the turns of all inputs with the handler's function: what `session.run` does. */
  async #loop(fn: TurnFunction): Promise<void> {
    if (this.#isLooping) {
      throw failedPrecondition(
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
      const turn = this.#takePrepared() ?? (await this.#acceptNext());
      if (turn === undefined || this.#isLast(await runTurn(this.state, turn, fn))) return;
    }
  }

  async #acceptNext(): Promise<Turn | undefined> {
    try {
      return await this.accept();
    } catch (error) {
      // Refused before the turn started: an invalid input, not a failed turn.
      this.#refusal = error;
      throw error;
    }
  }

  #isLast(outcome: Outcome): boolean {
    const { inbox, control } = this.state;
    switch (outcome.kind) {
      case 'done':
      case 'steered':
        return false;
      case 'failed':
        inbox.clear();
        throw outcome.error;
      case 'stopped':
      case 'lost':
        return true;
      case 'elsewhere':
        return outcome.output.error !== undefined || control.cause !== undefined;
    }
  }

  async #finish(result: HandlerResult | undefined): Promise<Output> {
    const { state } = this;
    await finishInvocation(state, result?.finishReason);
    const { followed, receipt } = state.ending;
    if (followed !== undefined) return followed;
    if (receipt !== undefined) await completeReceipt(state, result);
    return outputOf(state, result);
  }

  /** Whether an error of the handler is new, and not that of a turn that failed, was refused or was stopped. */
  #isFirstFailure(): boolean {
    const { control, ending } = this.state;
    return (
      control.cause === undefined && ending.failure === undefined && this.#refusal === undefined
    );
  }

  #fail(error: unknown): void {
    const failure = toWaymarkError(error);
    this.state.ending.failure = failure;
    this.state.failures.report(failure, 'turn');
  }

  async detach(input?: Input): Promise<Output> {
    const { state } = this;
    const own = input?.message === undefined && input?.resume === undefined ? [] : [input];
    // Inputs that are sent from now on do not belong to the run.
    const release = state.inbox.hold(own.length);
    try {
      return await state.locked(async () => {
        if (this.#openError !== undefined) throw this.#openError;
        if (this.#isOver) throw closedError();
        const place = await detachRun(state, own);
        const output =
          typeof place === 'object' ? detachedBefore(place.join) : detachedOutput(state);
        if (place !== 'here') this.#handOver(output);
        else state.inbox.end(own);
        state.control.unfollow();
        state.chunkSink.disconnect();
        return output;
      });
    } finally {
      release();
    }
  }

  /** Another worker has the run now, so this invocation may not write to it. */
  #handOver(output: Output): void {
    this.#handedOver = output;
    this.state.run = undefined;
    this.state.control.markLost();
  }
}

/** The session that a handler gets, with its turn loop. */
export class InvocationSession extends SessionFace<unknown> implements AgentSession {
  readonly #invocation: InvocationState;
  readonly #loop: (fn: TurnFunction) => Promise<void>;
  #steps: Steps | undefined;

  constructor(invocation: InvocationState, loop: (fn: TurnFunction) => Promise<void>) {
    super({
      id: () => invocation.position.sessionId,
      working: invocation.working,
      snapshotIds: invocation.progress.snapshotIds,
      checkCustom: (custom) => checkCustom(invocation.spec, custom),
      files: () => invocationFiles(invocation),
    });
    this.#invocation = invocation;
    this.#loop = loop;
  }

  /** The invocation of a session; `undefined` for anything else. */
  static stateOf(session: unknown): InvocationState | undefined {
    const isOurs = typeof session === 'object' && session !== null && #invocation in session;
    return isOurs ? session.#invocation : undefined;
  }

  run(fn: TurnFunction): Promise<void> {
    return this.#loop(fn);
  }

  result(): AgentResult {
    return this.#invocation.result();
  }

  takeSteering(): Promise<readonly Message[]> {
    return takeForHandler(this.#invocation);
  }

  step<Value>(
    key: string,
    fn: () => Promise<Value> | Value,
    undoable?: UndoableStep,
  ): Promise<DatesAsText<Value>> {
    this.#steps ??= new Steps(this.#invocation);
    return this.#steps.once(key, fn, defined({ undoable }));
  }

  /** A step inside a tool call. A retry of the call within one attempt gets its result again. */
  toolStep<Value>(key: string, fn: () => Promise<Value> | Value): Promise<DatesAsText<Value>> {
    this.#steps ??= new Steps(this.#invocation);
    return this.#steps.once(key, fn, { isRepeatable: true });
  }
}

export function invocationOf(context: ToolContext): InvocationState | undefined {
  return 'session' in context ? InvocationSession.stateOf(context.session) : undefined;
}
