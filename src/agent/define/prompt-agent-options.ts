import { WaymarkError } from '../../core/error.ts';
import { checkKinds, checkNumbers, checkOptions, type OptionNames } from '../../core/options.ts';
import type { Schema } from '../../core/schema/schema.ts';
import { type GenerateSettings, generateSettingNames } from '../../generate/generate-options.ts';
import { resolveOutput } from '../../generate/output/output.ts';
import type { CompactOptions, HistorySelection } from '../../generate/prompt/history.ts';
import type { Prompt } from '../../generate/prompt/prompt.ts';
import type { Template } from '../../generate/prompt/template.ts';
import type { Message } from '../../protocol/message.ts';
import { type AgentOptionsBase, agentOptionNames } from '../spec/options.ts';

/** How an agent over a prompt is declared. */
export interface PromptAgentOptions
  extends AgentOptionsBase<Schema | undefined, unknown, Schema | undefined>,
    Omit<GenerateSettings, 'limits'> {
  /** The system message: rendered once per turn, never stored. */
  readonly system?: Template;
  /** An existing prompt, whose settings are defaults that the agent's own options override. */
  readonly prompt?: Prompt | string;
  readonly promptInput?: unknown;
  /** Messages at the beginning of each session; stored once. */
  readonly messages?: readonly Message[];
  /** What of the stored messages the model sees. @default all */
  readonly history?: HistorySelection;
  /**
   * Summarizes the older messages of a long conversation for the model, also when the provider rejects a request as too long.
   * The summary is stored with the turn, so that every process and branch finds it; the messages stay.
   */
  readonly compact?: CompactOptions;
}

const optionNames: OptionNames<PromptAgentOptions> = {
  ...agentOptionNames,
  ...generateSettingNames,
  system: true,
  prompt: true,
  promptInput: true,
  messages: true,
  history: true,
  compact: true,
};

const optionKinds = {
  model: ['text', 'object'],
  system: ['text', 'function', 'list', 'object'],
  prompt: ['text', 'object'],
  messages: ['list'],
  history: ['function'],
  compact: ['object'],
  config: ['object'],
  toolChoice: ['text', 'object'],
  resources: ['list'],
  docs: ['list'],
  use: ['list'],
} as const;

/** What other libraries call these options. */
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
  checkNumbers(options, ['maxTurns'], `agent "${options.name}"`);
  checkKinds(options, optionKinds, `agent "${options.name}"`);
  resolveOutput(options.output);
}
