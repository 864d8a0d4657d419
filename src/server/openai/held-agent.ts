import { createAgent, internalsOf } from '../../agent/define/create-agent.ts';
import { signState } from '../../agent/persistence/client-state.ts';
import { clientTurnStore } from '../../agent/persistence/turn-store.ts';
import type { Agent } from '../../agent/spec/agent.ts';
import { isWaymarkError } from '../../core/error.ts';
import type { Message } from '../../protocol/message.ts';
import { type State, state as stateShape } from '../../protocol/state.ts';
import { isLongText, parseInSteps, parseText } from '../http/body.ts';
import type { OpenAiServerOptions } from '../http/handler-options.ts';
import { fromBase64Url, randomSecret, toBase64Url } from '../http/secret.ts';
import type { ServerContext } from '../http/server-context.ts';
import { badRequest } from './errors.ts';

/**
 * Agents whose state the client holds. An agent with a store gets a twin without one: the same in all else. Its state is signed
 * for one owner, and its store records which interrupts were answered.
 */
export function createHeldAgents({
  secret = randomSecret(),
}: OpenAiServerOptions): (agent: Agent) => Agent {
  const known = new WeakMap<Agent, Agent>();
  return (agent) => {
    const { spec, host } = internalsOf(agent);
    if (spec.store === undefined && spec.clientState !== undefined) return agent;
    const twin =
      known.get(agent) ??
      createAgent(
        {
          ...spec,
          store: undefined,
          turnStore: clientTurnStore,
          clientState: {
            secret,
            bindOwner: true,
            ...(spec.store && { replayGuard: spec.store }),
          },
        },
        host,
      );
    known.set(agent, twin);
    return twin;
  };
}

/** A signed state as clients hold it. It is not encrypted. */
export function fromState(state: State): string {
  return toBase64Url(JSON.stringify(state));
}

/** The state that a client has held. Whether it was changed is checked where the turn begins. */
export async function toState(
  held: string,
  { limits }: Pick<ServerContext, 'limits'>,
): Promise<State> {
  try {
    const text = fromBase64Url(held);
    const parse = isLongText(text) ? parseInSteps : parseText;
    return await parse(stateShape, text, { what: 'state', limits });
  } catch (error) {
    const why = isWaymarkError(error) ? ` ${error.message}` : '';
    throw badRequest(
      `The encrypted_content of a reasoning item is not a state that this server gave out. Send it back unchanged.${why}`,
      { param: 'input', code: 'invalid_encrypted_content' },
    );
  }
}

/** A state that begins with messages of the caller, signed, so that the agent takes it. */
export function stateWith(
  held: Agent,
  messages: readonly Message[],
  owner: string | undefined,
): State {
  const { spec, host } = internalsOf(held);
  const state = { sessionId: host.newId(), messages: [...messages] };
  if (spec.clientState === undefined) return state;
  const subject = { agent: spec.name, owner, now: host.clock.now() };
  return { ...state, seal: signState(spec.clientState, subject, state) };
}
