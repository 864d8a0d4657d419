import { SessionFace } from '../../session/session.ts';
import type { AgentResult, AgentSession, TurnFunction } from '../spec/handler.ts';
import { checkCustom } from '../spec/init.ts';
import type { InvocationState } from './invocation-state.ts';
import { Steps } from './steps.ts';

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
    });
    this.#invocation = invocation;
    this.#loop = loop;
  }

  run(fn: TurnFunction): Promise<void> {
    return this.#loop(fn);
  }

  result(): AgentResult {
    return this.#invocation.result();
  }

  step<Value>(key: string, fn: () => Promise<Value> | Value): Promise<Value> {
    this.#steps ??= new Steps(this.#invocation);
    return this.#steps.once(key, fn);
  }
}
