import type { AgentApi } from '../api/agent-api.ts';
import type { AgentTypes } from '../api/types.ts';
import { createEmitter } from '../core/async/emitter.ts';
import { toErrorBody } from '../core/error.ts';
import type { Clock } from '../core/time.ts';
import type { MessageOptions } from '../protocol/message-page.ts';
import type { Conversation, Facts } from './conversation.ts';
import type { TimelineSync } from './timeline-sync.ts';
import type { AgentView } from './view.ts';

/** A value that can be read at any time, and is announced at a limited rate; never the same one twice. */
export function createPublisher<T>(options: {
  readonly clock: Clock;
  /** The least number of milliseconds between two announcements of `publishSoon`. */
  readonly throttle: number;
  readonly read: () => T;
}) {
  const { clock, throttle, read } = options;
  const changed = createEmitter();
  let value = read();
  let waiting = false;

  const publish = (): void => {
    const next = read();
    if (Object.is(next, value)) return;
    value = next;
    changed.emit();
  };
  return {
    /** The value that was announced last. */
    get: (): T => value,
    subscribe: changed.subscribe,
    /** Announces the value at once. */
    publish,
    /** Announces it soon, together with what else changes until then. */
    publishSoon(): void {
      if (waiting) return;
      waiting = true;
      const release = (): void => {
        waiting = false;
        publish();
      };
      if (throttle <= 0) queueMicrotask(release);
      else clock.sleep(throttle).then(release, release);
    },
  };
}

/** The shared parts of a store's flows. A flow is whatever changes the conversation over time; one is current. */
export interface FlowContext<Types extends AgentTypes> {
  readonly agent: AgentApi<Types>;
  readonly conversation: Conversation<Types>;
  readonly publisher: ReturnType<typeof createPublisher<AgentView<Types>>>;
  readonly timeline: TimelineSync<Types>;
  /** Which messages of a state are read at first. */
  readonly page: MessageOptions;
}

export function change<Types extends AgentTypes>(
  { conversation, publisher }: FlowContext<Types>,
  facts: Partial<Facts<Types>>,
): void {
  conversation.set(facts);
  publisher.publish();
}

/** Does something, and shows what went wrong; resolves to whether it went well. */
export async function attempt<Types extends AgentTypes>(
  flowContext: FlowContext<Types>,
  work: () => Promise<void>,
): Promise<boolean> {
  change(flowContext, { error: undefined });
  try {
    await work();
    return true;
  } catch (error) {
    change(flowContext, { error: toErrorBody(error) });
    return false;
  }
}

/** Shows an error, and that nothing runs any more. */
export function showFailure<Types extends AgentTypes>(
  { conversation, publisher }: FlowContext<Types>,
  error: unknown,
): void {
  conversation.fail(toErrorBody(error));
  publisher.publish();
}
