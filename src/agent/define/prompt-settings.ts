import { defined } from '../../core/defined.ts';
import { WaymarkError } from '../../core/error.ts';
import { checkOptions, type OptionNames } from '../../core/options.ts';
import { parseSync, type Schema } from '../../core/schema/schema.ts';
import {
  type GenerateOptions,
  type GenerateSettings,
  generateSettingNames,
} from '../../generate/generate-options.ts';
import type { Generator } from '../../generate/generator.ts';
import type { Middleware } from '../../generate/middleware/middleware.ts';
import { resolveOutput } from '../../generate/output/output.ts';
import type { Prompt } from '../../generate/prompt/prompt.ts';
import type { Template } from '../../generate/prompt/template.ts';
import type { HandlerIo } from '../spec/handler.ts';
import { agentOptionNames } from '../spec/options.ts';
import type { PromptChanges } from '../spec/spec.ts';
import type { AgentOptions } from './define.ts';

/** Options of any prompt agent, without the types that a caller infers. */
export interface PromptAgentOptions
  extends Omit<
    AgentOptions<Schema | undefined, unknown, Schema | undefined, Schema | undefined, unknown>,
    'system' | 'prompt' | 'tools'
  > {
  readonly system?: Template;
  readonly prompt?: Prompt | string;
  readonly tools?: NonNullable<GenerateSettings['tools']>;
}

const optionNames: OptionNames<PromptAgentOptions> = {
  ...agentOptionNames,
  ...generateSettingNames,
  model: ['text', 'object'],
  config: 'object',
  toolChoice: ['text', 'object'],
  maxTurns: 'number',
  resources: 'list',
  docs: 'list',
  use: 'list',
  system: ['text', 'function', 'list', 'object'],
  prompt: ['text', 'object'],
  promptInput: true,
  messages: 'list',
  history: 'function',
  compact: 'object',
};

/** Names of these options in other libraries. */
const namesElsewhere = {
  instructions: 'system',
  systemPrompt: 'system',
  stateSchema: 'state',
  clientTransform: 'transform',
  middleware: 'use',
  stopWhen: 'maxTurns',
  maxSteps: 'maxTurns',
  toolApproval: 'Middleware goes into `use`, as in use: [toolApproval([…])].',
  checkpointer: 'store',
};

const notForAgents = [
  'returnToolRequests',
  'resume',
  'onChunk',
  'signal',
  'before',
  'after',
] as const;

/** Refuses options that a prompt agent does not have. */
export function checkPromptAgentOptions(options: PromptAgentOptions): void {
  const refused = notForAgents.find((key) => key in options);
  if (refused !== undefined) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `An agent has no \`${refused}\`: it runs its tools and its stream itself. Use generate for that.`,
    );
  }
  checkOptions(options, optionNames, `agent "${options.name}"`, namesElsewhere);
  resolveOutput(options.output);
}

export type Render = (scope: {
  readonly state: unknown;
  readonly context: HandlerIo['context'];
}) => Promise<GenerateOptions>;

/** The settings of one request: the existing prompt's, overridden by the agent's own. */
export function rendererOf(options: PromptAgentOptions, generator: Generator): Render {
  const { name, prompt, promptInput, system } = options;
  const own = settingsOf(options);
  if (prompt === undefined) {
    const inline = generator.definePrompt({
      name,
      ...own,
      ...(system !== undefined && { system }),
    });
    return (scope) => inline.render(undefined, scope);
  }
  if (typeof prompt !== 'string' && prompt.inputSchema !== undefined) {
    const input = { ...prompt.defaultInput, ...(promptInput ?? {}) };
    parseSync(prompt.inputSchema, input, `The promptInput of agent "${name}"`);
  }
  const told =
    system === undefined ? undefined : generator.definePrompt({ name: `${name}.system`, system });
  return async (scope) => {
    const existing = typeof prompt === 'string' ? generator.prompt(prompt) : prompt;
    const rendered = await existing.render(promptInput, scope);
    const { system: overridden } = (await told?.render(undefined, scope)) ?? {};
    const limits = { ...rendered.limits, ...own.limits };
    return { ...rendered, ...own, limits, ...(overridden && { system: overridden }) };
  };
}

/** The settings of one request, with those that a replay changes. */
export function changedRenderer(
  name: string,
  render: Render,
  { system, config, tools }: PromptChanges,
  generator: Generator,
): Render {
  const told = system === undefined ? undefined : generator.inlinePrompt({ name, system });
  return async (scope) => {
    const rendered = await render(scope);
    const changed = await told?.render(undefined, scope);
    return {
      ...rendered,
      ...(changed?.system && { system: changed.system }),
      ...(config && { config: { ...rendered.config, ...config } }),
      ...(tools && { tools, use: (rendered.use ?? []).map(withoutNames) }),
    };
  };
}

/** Middleware whose tools a replay may have left out; that is no mistake. */
function withoutNames({ tools: _, ...middleware }: Middleware): Middleware {
  return middleware;
}

function settingsOf(options: PromptAgentOptions): GenerateSettings {
  const { model, config, tools, toolChoice, maxTurns, resources, docs, output, use } = options;
  // The turn keeps the others itself, over all its model calls.
  const { turn = {} } = options.limits ?? {};
  const { timeout: _t, tokens: _n, cost: _m, toolCalls: _c, ...limits } = turn;
  return defined({
    limits: Object.keys(limits).length > 0 ? limits : undefined,
    model,
    config,
    tools,
    toolChoice,
    maxTurns,
    resources,
    docs,
    output,
    use,
  });
}
