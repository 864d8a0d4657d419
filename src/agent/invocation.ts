import type { Channel } from '../core/channel.ts';
import { toWaymarkError, WaymarkError } from '../core/error.ts';
import type { JsonObject } from '../core/json.ts';
import { inSpan } from '../core/trace.ts';
import { genAi, attributes as names, operations } from '../core/trace-names.ts';
import { callContext } from '../generate/hooks.ts';
import type { ModelRef } from '../generate/model.ts';
import type { Message } from '../protocol/message.ts';
import type { SessionInfo } from '../protocol/session.ts';
import type { Chunk, FinishReason, Init, Input, Output, Usage } from '../protocol/turn.ts';
import { createSession, sessionKey } from '../session/session.ts';
import { hashState, type SessionState } from '../session/session-state.ts';
import type { RunMode, Scope, StateBase, Totals } from '../session/store.ts';
import { WorkingState } from '../session/working-state.ts';
import { beginTurn, claimDetached } from './beginning.ts';
import { Control } from './control.ts';
import { detachedOutput } from './detach.ts';
import type { AgentResult, AgentSession } from './handler.ts';
import { Inbox } from './inbox.ts';
import { clientState, freshState } from './init.ts';
import { leavingChunks } from './leaving.ts';
import type { Position } from './ledger.ts';
import { Outbox } from './outbox.ts';
import { outputOf } from './output.ts';
import { PartialAnswer } from './partial.ts';
import { createResponder } from './responder.ts';
import type { RunLog } from './run-log.ts';
import { finishInvocation } from './saving.ts';
import { type AgentHost, type AgentSpec, scopeOf } from './spec.ts';
import { createSteps } from './step.ts';
import { runTurn } from './turn.ts';
import { invocationKey } from './turn-key.ts';
import type { Outcome, Turn } from './turn-state.ts';

/** How long after a stop a handler may take to come to its end before it is left behind. */
const graceMs = 5_000;

/** What an invocation is asked to do. */
export interface InvocationRequest {
  readonly init: Init;
  readonly owner?: string;
  readonly mode: Exclude<RunMode, 'detached'>;
  readonly context: JsonObject;
  readonly model?: ModelRef;
  readonly signal?: AbortSignal;
  readonly startedBy?: SessionInfo['startedBy'];
  /** Where the chunks go; nobody listens to a run that was taken over. */
  readonly caller?: Channel<Chunk>;
}

/** The run that is being worked on: one per turn, or one for all that was queued when the caller detached. */
export interface ActiveRun {
  readonly runId: string;
  readonly position: Position;
  readonly log: RunLog;
  /** Takes it off the list of runs whose claims are kept alive. */
  readonly leave: () => void;
  /** For a detached run: how many of its inputs are done. */
  detached?: { inputsDone: number };
}

/** One connection to an agent: an init, turns, an output. Its parts (begin, perform, save, finish) are functions over it. */
export class Invocation {
  readonly spec: AgentSpec;
  readonly host: AgentHost;
  readonly request: InvocationRequest;
  readonly scope: Scope;
  readonly control: Control = new Control();
  readonly inbox: Inbox = new Inbox();
  readonly partial: PartialAnswer = new PartialAnswer();
  readonly snapshotIds: string[] = [];
  readonly working: WorkingState;
  readonly outbox: Outbox;
  readonly session: AgentSession;

  sessionId: string;
  run: ActiveRun | undefined;
  turn: Turn | undefined;
  /** A turn that was begun before the handler, so that the handler finds its state. */
  #prepared: Turn | undefined;
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
  totals: Totals | undefined;
  turnIndex = -1;
  turnsBegun = 0;
  opportunity = 0;
  /** Snapshots made since the claim, which said the next index. */
  savedInRun = 0;
  usage: Usage = {};
  last: { readonly finishReason: FinishReason; readonly output?: unknown } | undefined;
  failure: WaymarkError | undefined;
  #gate: Promise<unknown> = Promise.resolve();
  #absorbed = 0;
  #refusal: unknown;
  #openError: unknown;

  constructor(spec: AgentSpec, host: AgentHost, request: InvocationRequest) {
    this.spec = spec;
    this.host = host;
    this.request = request;
    this.scope = scopeOf(spec, request.owner);
    this.sessionId = request.init.sessionId ?? host.newId();
    this.good = freshState(spec);
    this.working = new WorkingState(this.good);
    this.outbox = new Outbox({
      caller: request.caller,
      leave: leavingChunks(spec.transform),
      signal: this.control.signal,
    });
    this.session = this.#createSession();
    this.#listen();
    this.control.follow(request.signal);
    this.control.signal.addEventListener('abort', () => this.inbox.clear(), { once: true });
  }

  /** Runs from the opening to the end, and gives the output. Rejects when it could not be started, or an input was refused. */
  async execute(): Promise<Output> {
    await this.locked(() => this.#open());
    const first = await this.inbox.peek();
    if (first === undefined) return await this.#handle();
    this.#prepared = await this.locked(() => beginTurn(this, this.#take()));
    const { spec } = this;
    return await inSpan(
      `${operations.invokeAgent} ${spec.name}`,
      {
        attributes: {
          [genAi.operation]: operations.invokeAgent,
          [genAi.agentName]: spec.name,
          [genAi.agentDescription]: spec.description,
          [genAi.conversationId]: this.sessionId,
          [names.sessionId]: this.sessionId,
          [names.genkitAgent]: spec.name,
        },
      },
      () => this.#handle(),
    );
  }

  /** Goes on with a run that was begun elsewhere. */
  async resume(turn: Turn | undefined): Promise<Output> {
    this.#prepared = turn;
    return await this.#handle();
  }

  /** Goes on without the caller. */
  async detach(input?: Input): Promise<Output> {
    return await this.locked(async () => {
      if (this.#openError !== undefined) throw this.#openError;
      if (input?.message !== undefined || input?.resume !== undefined) this.inbox.push(input);
      this.inbox.close();
      await claimDetached(this);
      this.control.unfollow();
      this.outbox.disconnect();
      return detachedOutput(this);
    });
  }

  /** The turn to work on: the one that was begun already, or that of the next input. */
  async nextTurn(): Promise<Turn> {
    const prepared = this.#prepared;
    this.#prepared = undefined;
    return prepared ?? (await this.locked(() => beginTurn(this, this.#take())));
  }

  /** Adds the messages that a generate call has come to, those it was not given before. */
  absorb(messages: readonly Message[]): void {
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
  }

  /** One thing at a time: beginning a turn, saving it, detaching. */
  locked<Value>(fn: () => Promise<Value>): Promise<Value> {
    const result = this.#gate.then(fn);
    this.#gate = result.catch(() => {});
    return result;
  }

  /** Waits for work; after a stop only so long, for work that does not look at its signal. */
  async untilStopped<Value>(work: Promise<Value>): Promise<Value> {
    const { signal } = this.control;
    const over = new AbortController();
    const left = new Promise<never>((_, reject) => {
      const onAbort = (): void => {
        this.host.clock.sleep(graceMs, over.signal).then(
          () => {
            this.working.close(
              'The turn was stopped and has ended: nothing can be changed by it any more.',
            );
            reject(new WaymarkError('CANCELLED', 'The turn was stopped.'));
          },
          () => {},
        );
      };
      if (signal.aborted) onAbort();
      else signal.addEventListener('abort', onAbort, { once: true });
      over.signal.addEventListener('abort', () => signal.removeEventListener('abort', onAbort));
    });
    try {
      return await Promise.race([work, left]);
    } finally {
      over.abort();
    }
  }

  async #open(): Promise<void> {
    try {
      await this.#openAt();
    } catch (error) {
      this.#openError = error;
      this.inbox.clear();
      throw error;
    }
  }

  async #openAt(): Promise<void> {
    const { init } = this.request;
    if (init.state !== undefined) {
      this.sessionId = init.state.sessionId ?? this.sessionId;
      this.setState(await clientState(this.spec, init.state));
      this.turnIndex = countTurns(this.working.state) - 1;
    } else if (init.snapshotId !== undefined) {
      await this.#openSnapshot(init.snapshotId);
    }
  }

  async #openSnapshot(snapshotId: string): Promise<void> {
    const loaded = await this.spec.ledger.load(this.scope, { snapshotId });
    if (loaded === undefined) {
      throw new WaymarkError(
        'NOT_FOUND',
        `No snapshot "${snapshotId.slice(0, 64)}" of agent "${this.spec.name}".`,
      );
    }
    const { snapshot } = loaded;
    const { sessionId } = this.request.init;
    if (sessionId !== undefined && sessionId !== snapshot.sessionId) {
      throw new WaymarkError('INVALID_ARGUMENT', 'The snapshot belongs to another session.');
    }
    if (snapshot.status !== 'succeeded') {
      throw new WaymarkError(
        'FAILED_PRECONDITION',
        `The snapshot is ${snapshot.status}; only one that succeeded can be gone on from.`,
      );
    }
    this.sessionId = snapshot.sessionId;
    this.setState(loaded.state);
  }

  /** Goes to a state that was loaded. */
  setState(state: SessionState): void {
    this.working.reset(state);
    this.good = state;
  }

  #take(): Input {
    const input = this.inbox.take();
    if (input === undefined) throw new TypeError('There is no input to take.');
    return input;
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
    let result: AgentResult | undefined;
    try {
      const work = sessionKey.run(session, () =>
        invocationKey.run(this, () =>
          callContext.run(request.context, async () => spec.handler(session, io)),
        ),
      );
      result = (await this.untilStopped(work)) ?? undefined;
    } catch (error) {
      if (this.control.cause === undefined) this.failure ??= toWaymarkError(error);
    }
    if (this.#refusal !== undefined) {
      if (this.run?.detached === undefined) throw this.#refusal;
      // Nobody waits for a detached run: it ends as a failed one.
      this.failure = toWaymarkError(this.#refusal);
    }
    await finishInvocation(this);
    return outputOf(this, result);
  }

  async #loop(fn: Parameters<AgentSession['run']>[0]): Promise<void> {
    while (this.#prepared !== undefined || (await this.inbox.peek()) !== undefined) {
      const outcome = await runTurn(this, fn).catch((error: unknown) => {
        // Refused before the turn began: the caller's mistake, not a failed turn.
        if (this.turn === undefined) this.#refusal = error;
        throw error;
      });
      if (this.#ended(outcome)) return;
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
    }
  }

  #createSession(): AgentSession {
    const session = createSession({
      id: () => this.sessionId,
      working: this.working,
      snapshotIds: this.snapshotIds,
    });
    // Getters must stay getters, so the loop's methods are added to the same object.
    return Object.assign(session, {
      run: (fn: Parameters<AgentSession['run']>[0]) => this.#loop(fn),
      result: () => this.result(),
      step: createSteps(this),
    });
  }

  /** The default result. */
  result(): AgentResult {
    const { history, artifacts } = this.working.state;
    const message = history.at(-1);
    return { ...(message && { message }), artifacts };
  }

  #listen(): void {
    this.working.onMessages = (messages) => {
      if (messages.some(({ role }) => role === 'model')) this.partial.clear();
    };
    this.working.onCustom = ({ patch, custom }) => {
      const { turn } = this;
      if (turn === undefined) return;
      const whole = { op: 'replace', path: '', value: custom ?? null } as const;
      this.outbox.push({ customPatch: turn.customSent ? [...patch] : [whole] });
      turn.customSent = true;
    };
  }

  /** The hash of what was saved last. */
  savedHash(): string | undefined {
    return this.base && hashState(this.base.state);
  }
}

function countTurns({ history }: SessionState): number {
  let turns = 0;
  for (const { role } of history.toArray()) if (role === 'user') turns++;
  return turns;
}
