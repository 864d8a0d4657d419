import { WaymarkError } from '../../core/error.ts';
import { checkKinds, checkNumbers, checkOptions, type OptionNames } from '../../core/options.ts';
import { parseSync, type Schema } from '../../core/schema/schema.ts';
import {
  type GenerateOptions,
  type GenerateSettings,
  generateSettingNames,
} from '../../generate/generate-options.ts';
import type { Generator } from '../../generate/generator.ts';
import type { Middleware } from '../../generate/middleware/middleware.ts';
import { resolveOutput } from '../../generate/output/output.ts';
import type { CompactOptions, HistorySelection } from '../../generate/prompt/history.ts';
import type { Prompt } from '../../generate/prompt/prompt.ts';
import type { Template } from '../../generate/prompt/template.ts';
import type { Message } from '../../protocol/message.ts';
import type { HandlerIo } from '../spec/handler.ts';
import { type AgentOptionsBase, agentOptionNames } from '../spec/options.ts';
import type { PromptChanges } from '../spec/spec.ts';

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

/** Gives the settings of one request. */
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
  return {
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(model !== undefined && { model }),
    ...(config && { config }),
    ...(tools && { tools }),
    ...(toolChoice && { toolChoice }),
    ...(maxTurns !== undefined && { maxTurns }),
    ...(resources && { resources }),
    ...(docs && { docs }),
    ...(output && { output }),
    ...(use && { use }),
  };
}
