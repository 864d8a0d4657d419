import type { Schema } from '../core/schema.ts';
import type { Agent } from './agent.ts';
import { createAgent } from './create-agent.ts';
import type { AgentHandler } from './handler.ts';
import { checkCustomInput } from './input.ts';
import { type AgentEnv, type AgentOptionsBase, commonSpec } from './options.ts';

/** Declares an agent whose turn loop is the caller's own. */
export function createCustomAgent(
  options: AgentOptionsBase<Schema | undefined, unknown, Schema | undefined>,
  handler: AgentHandler,
  env: AgentEnv,
): Agent {
  return createAgent(
    {
      ...commonSpec(options, env),
      recovery: 'restart',
      checkInput: checkCustomInput,
      receive: async (_state, { message }) => (message === undefined ? [] : [message]),
      handler,
    },
    env.host,
  );
}
