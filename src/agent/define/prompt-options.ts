import { WaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { checkOptions, type OptionNames } from '../../core/options.ts';
import type { Schema } from '../../core/schema/schema.ts';
import { type GenerateSettings, generateSettingNames } from '../../generate/generate-options.ts';
import { resolveOutput } from '../../generate/output/output.ts';
import type { Prompt } from '../../generate/prompt/prompt.ts';
import type { Template } from '../../generate/prompt/template.ts';
import { agentOptionNames } from '../spec/options.ts';
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

/** The settings that the agent shares with generate. The turn keeps some limits itself, over all its model calls. */
export function settingsOf(options: PromptAgentOptions): GenerateSettings {
  const { turn = {} } = options.limits ?? {};
  const { timeout: _t, tokens: _n, cost: _m, toolCalls: _c, ...limits } = turn;
  const names = Object.keys(generateSettingNames) as (keyof GenerateSettings)[];
  const shared = Object.fromEntries(names.map((name) => [name, options[name]]));
  return defined({ ...shared, limits: Object.keys(limits).length > 0 ? limits : undefined });
}
