import type { DatesAsText } from '../../core/json/dates.ts';
import type { ToolContext } from '../../generate/tool/tool-context.ts';
import type { Message } from '../../protocol/message.ts';
import { SessionFace } from '../../session/session.ts';
import type { AgentResult, AgentSession, TurnFunction } from '../spec/handler.ts';
import { checkCustom } from '../spec/init.ts';
import { invocationFiles } from './invocation-files.ts';
import type { InvocationState } from './invocation-state.ts';
import { Steps } from './steps.ts';
import { takeForHandler } from './take-steering.ts';

/** The session of an invocation, with its turn loop. */
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

  step<Value>(key: string, fn: () => Promise<Value> | Value): Promise<DatesAsText<Value>> {
    this.#steps ??= new Steps(this.#invocation);
    return this.#steps.once(key, fn);
  }

  /** A step inside a tool call. A retry of the call within one attempt gets its result again. */
  toolStep<Value>(key: string, fn: () => Promise<Value> | Value): Promise<DatesAsText<Value>> {
    this.#steps ??= new Steps(this.#invocation);
    return this.#steps.once(key, fn, { isRepeatable: true });
  }
}

/** The invocation that a tool was called in. */
export function invocationOf(context: ToolContext): InvocationState | undefined {
  return 'session' in context ? InvocationSession.stateOf(context.session) : undefined;
}
