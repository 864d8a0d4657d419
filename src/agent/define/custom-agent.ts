import { invalid } from '../../core/error.ts';
import { checkOptions } from '../../core/options.ts';
import { checkAnswers, closeToolRequests } from '../../generate/tool/resume.ts';
import type { Message } from '../../protocol/message.ts';
import type { Input } from '../../protocol/turn.ts';
import type { SessionState } from '../../session/session-state.ts';
import type { Agent } from '../contract/agent.ts';
import type { AgentHandler } from '../contract/handler.ts';
import { type AnyAgentOptions, agentOptionNames } from '../contract/options.ts';
import { checkCustomInput } from '../turn/inputs.ts';
import { lastRound } from '../turn/turn-state.ts';
import { type AgentEnv, commonSpec } from './common-spec.ts';
import { createAgent } from './create-agent.ts';

/** Declares an agent whose turn loop is the caller's own. */
export function createCustomAgent(
  options: AnyAgentOptions,
  handler: AgentHandler,
  env: AgentEnv,
): Agent {
  checkOptions(options, agentOptionNames, `agent "${options.name}"`);
  if (typeof handler !== 'function') {
    throw invalid(
      `Agent "${options.name}" has no handler. Pass it as the second argument: defineCustomAgent({ name }, async (session) => …).`,
    );
  }
  return createAgent(
    {
      ...commonSpec(options, env),
      recovery: 'restart',
      checkInput: checkCustomInput,
      receive: async (state, input) => receive(state, input),
      handler: (session, io) => handler(session, io),
    },
    env.host,
  );
}

/**
 * The messages that an input adds before the handler sees it. As with prompt agents, a plain message declines open requests, and answers must
 * fit the requests that wait for them: the handler cannot know whether it was called for them before.
 */
function receive({ history }: SessionState, { message, resume }: Input): readonly Message[] {
  if (resume !== undefined) checkAnswers(history.toArray(), resume);
  if (message === undefined) return [];
  // A custom agent may take answers as tool responses in a message.
  const isPlain = resume === undefined && !message.content.some((part) => 'toolResponse' in part);
  const declined = isPlain ? closeToolRequests(lastRound(history), 'declined') : undefined;
  return declined === undefined ? [message] : [declined, message];
}
