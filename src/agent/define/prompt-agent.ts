import type { Generator } from '../../generate/generator.ts';
import { checkResolvedNames } from '../../generate/middleware/tool-approval.ts';
import { parseMessage } from '../../protocol/parse.ts';
import type { Agent } from '../spec/agent.ts';
import { checkPromptInput } from '../spec/input.ts';
import type { AgentSpec } from '../spec/spec.ts';
import { checkDefinition, checkSetup, notRendered } from './check-setup.ts';
import { type AgentEnv, commonSpec } from './common-spec.ts';
import { createAgent } from './create-agent.ts';
import { describe, outputSchemaOf } from './describe-prompt-agent.ts';
import { checkPromptAgentOptions, type PromptAgentOptions } from './prompt-agent-options.ts';
import { changedRenderer, type Render, rendererOf } from './prompt-settings.ts';
import { handlerOf, receive, toolsOf } from './prompt-turn.ts';

/** Declares an agent that answers each turn by one generate call over its prompt. */
export function createPromptAgent(
  options: PromptAgentOptions,
  env: AgentEnv & { readonly generator: Generator },
): { readonly agent: Agent; readonly check: () => Promise<void> } {
  checkPromptAgentOptions(options);
  const { generator } = env;
  const initial = (options.messages ?? []).map(parseMessage);
  // Before the prompt is defined: what is refused leaves nothing behind.
  const common = commonSpec(options, env);
  const setup = { agent: common, ...options };
  checkDefinition(setup, generator);
  const render = rendererOf(options, generator);
  const work = (rendered: Render): Pick<AgentSpec, 'handler' | 'receive'> => ({
    receive: (state, input, context) =>
      receive(state, input, initial, () =>
        toolsOf(rendered, generator, { state: state.custom, context, input }),
      ),
    handler: handlerOf(options, rendered, generator),
  });
  const agent = createAgent(
    {
      ...common,
      ...work(render),
      initialMessages: initial,
      withChanges: (changes) => work(changedRenderer(options.name, render, changes, generator)),
      recovery: 'checkpoint',
      checkInput: checkPromptInput,
      checkSetup: (model) => checkSetup(setup, generator, { model, isTurn: true }),
      describe: () => describe(render, generator, common.initialState),
      tools: () => toolsOf(render, generator, { state: common.initialState, context: {} }),
      async outputSchema() {
        return outputSchemaOf((await render({ state: common.initialState, context: {} })).output);
      },
    },
    env.host,
  );
  return {
    agent,
    check: async () => {
      checkSetup(setup, generator);
      const report = (error: unknown, toolSource: string): void =>
        env.host.report(error, { phase: 'tool', agent: options.name, toolSource });
      const scope = { state: common.initialState, context: {} };
      const rendered = await render(scope).catch((cause: unknown) => {
        throw notRendered(options.name, cause);
      });
      const { signal } = new AbortController();
      const resolved = await generator.resolveTools(rendered.tools, {
        context: {},
        signal,
        report,
      });
      checkResolvedNames(rendered, resolved, { owner: `agent "${options.name}"` });
    },
  };
}
