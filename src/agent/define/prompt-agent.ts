import { invalid } from '../../core/error.ts';
import { defined, type Json, type JsonObject, toJson } from '../../core/json/json.ts';
import { checkOptions, type OptionNames } from '../../core/options.ts';
import { parseSync, type Schema, toJsonSchema } from '../../core/schema/schema.ts';
import { untrustedSchema } from '../../core/schema/untrusted-schema.ts';
import {
  type GenerateOptions,
  type GenerateSettings,
  generateSettingNames,
} from '../../generate/generate-options.ts';
import type { Generator } from '../../generate/generator.ts';
import { checkResolvedNames } from '../../generate/middleware/middleware.ts';
import { outputOptionsOf, resolveOutput } from '../../generate/output/output.ts';
import type { Prompt } from '../../generate/prompt/prompt.ts';
import type { SkillSource } from '../../generate/skill/skill.ts';
import {
  createSkills,
  type Skills,
  skillInfoOf,
  toSkillSources,
  unusableSkills,
} from '../../generate/skill/skills.ts';
import { type Template, toolMessage, toParts } from '../../generate/template.ts';
import { callerTools, checkCallerTools } from '../../generate/tool/caller-tools.ts';
import { closeToolRequests, planResume } from '../../generate/tool/resume.ts';
import type { Tool } from '../../generate/tool/tool.ts';
import type { Message } from '../../protocol/message.ts';
import { parseMessage } from '../../protocol/parse.ts';
import type { ToolInfo } from '../../protocol/requests.ts';
import type { Input, TurnSettings } from '../../protocol/turn.ts';
import type { SessionState } from '../../session/session-state.ts';
import type { Agent } from '../contract/agent.ts';
import type {
  HandlerIo,
  RunningTurn,
  TurnInfo,
  TurnLoopHandler,
  TurnResult,
} from '../contract/handler.ts';
import { agentOptionNames } from '../contract/options.ts';
import type { AgentContent, AgentSpec, PromptChanges } from '../contract/spec.ts';
import { checkPromptInput } from '../turn/inputs.ts';
import { lastRound } from '../turn/turn-state.ts';
import { checkDefinition, checkSetup, notRendered } from './check-prompt-agent.ts';
import { type AgentEnv, commonSpec } from './common-spec.ts';
import { createAgent } from './create-agent.ts';
import type { AgentOptions } from './define.ts';
import { memoryTools } from './memory-tools.ts';

/** Declares an agent that answers each turn by one generate call over its prompt. */
export function createPromptAgent(
  options: PromptAgentOptions,
  env: AgentEnv & { readonly generator: Generator; readonly skills: readonly SkillSource[] },
): { readonly agent: Agent; readonly check: () => Promise<void> } {
  checkPromptAgentOptions(options);
  const { generator } = env;
  const initial = (options.messages ?? []).map(parseMessage);
  // Before the prompt is defined: what is refused leaves nothing behind.
  const common = commonSpec(options, env);
  const setup = { agent: common, ...options };
  checkDefinition(setup, generator);
  const skills = skillsOf(options, env.skills);
  const base = withMemoryTools(rendererOf(options, generator), options, common);
  const complete = (rendered: Render): Render => withSkills(options.name, rendered, skills);
  const render = complete(base);
  const report = (error: unknown, toolSource: string): void =>
    env.host.report(error, { phase: 'tool', agent: options.name, toolSource });
  const work = (rendered: Render): Pick<AgentSpec, 'handler' | 'receive'> => ({
    receive: (state, input, context) =>
      receive(state, input, initial, () =>
        toolsOf(rendered, generator, { state: state.custom, context, input }),
      ),
    handler: handlerOf(options, rendered, { generator, report }),
  });
  const agent = createAgent(
    {
      ...common,
      ...work(render),
      initialMessages: initial,
      withChanges: (changes) =>
        work(complete(changedRenderer(options.name, base, changes, generator))),
      recovery: 'checkpoint',
      checkInput: checkPromptInput,
      checkSetup: (model) => checkSetup(setup, generator, { model, isTurn: true }),
      describe: () => describe(render, { generator, skills }, common.initialState),
      ...(skills && { skills: (context) => usable(options.name, skills.list({ context })) }),
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
      const scope = { state: common.initialState, context: {}, report };
      const rendered = await render(scope).catch((cause: unknown) => {
        throw notRendered(options.name, cause);
      });
      const resolved = await generator.resolveTools(rendered.tools, { report });
      checkResolvedNames(rendered, resolved, { owner: `agent "${options.name}"` });
    },
  };
}

type Render = (scope: {
  readonly state: unknown;
  readonly context: HandlerIo['context'];
  /** Tells of skills that are not available. */
  readonly report?: Report;
}) => Promise<GenerateOptions>;

type Report = (error: unknown, source: string) => void;

/** The settings of one request: the existing prompt's, overridden by the agent's own. */
function rendererOf(options: PromptAgentOptions, generator: Generator): Render {
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

/** The settings of one request, with the tools of the agent's memory. */
function withMemoryTools(
  render: Render,
  { memory }: PromptAgentOptions,
  { memory: definition, store }: Pick<AgentSpec, 'memory' | 'store'>,
): Render {
  if (memory === undefined || definition === undefined) return render;
  const tools = memoryTools(memory, definition, store !== undefined);
  return async (scope) => {
    const rendered = await render(scope);
    return { ...rendered, tools: [...(rendered.tools ?? []), ...tools] };
  };
}

function skillsOf(
  { name, skills }: PromptAgentOptions,
  ofApp: readonly SkillSource[],
): Skills | undefined {
  return createSkills(skills === undefined ? ofApp : toSkillSources(skills, `agent "${name}"`));
}

async function usable<Found>(agent: string, found: Promise<Found>): Promise<Found> {
  return await found.catch((error: unknown) => {
    throw unusableSkills(agent, error);
  });
}

/** The settings of one request, with the skills that the model can load. */
function withSkills(agent: string, render: Render, skills: Skills | undefined): Render {
  if (skills === undefined) return render;
  return async (scope) => {
    const [rendered, offer] = await Promise.all([
      render(scope),
      usable(agent, skills.offer(scope)),
    ]);
    if (offer === undefined) return rendered;
    const { system } = rendered;
    const parts = system === undefined ? [] : [...toParts(system), { text: '\n\n' }];
    return {
      ...rendered,
      system: [...parts, { text: offer.text }],
      tools: [...(rendered.tools ?? []), ...offer.tools],
    };
  };
}

/** The settings of one request, with those that a replay changes. */
function changedRenderer(
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
      // The tools that middleware names may be left out; that is no mistake.
      ...(tools && { tools, use: (rendered.use ?? []).map(({ tools: _, ...use }) => use) }),
    };
  };
}

/** The messages that an input adds to the conversation before the model is called. */
async function receive(
  state: SessionState,
  input: Input,
  initial: readonly Message[],
  tools: () => Promise<ReadonlyMap<string, Tool>>,
): Promise<readonly Message[]> {
  if (input.resume !== undefined) {
    // Checked before the turn is begun, so that a wrong answer leaves the interrupt as it was.
    const steps = await planResume(state.history.toArray(), input.resume, await tools());
    if (input.message === undefined) return [];
    const responses = steps.flatMap((step) => ('response' in step ? [step.response] : []));
    return [toolMessage(responses), input.message];
  }
  if (input.tools !== undefined) await tools();
  const started = state.history.length === 0 ? initial : [];
  const declined = closeToolRequests(lastRound(state.history), 'declined');
  const message = input.message === undefined ? [] : [input.message];
  return [...started, ...(declined ? [declined] : []), ...message];
}

/** The tools of a turn: the agent's own, and those that the caller executes. Refuses names that are taken. */
async function toolsOf(
  render: Render,
  generator: Generator,
  { input, ...scope }: Parameters<Render>[0] & { readonly input?: Input },
): Promise<ReadonlyMap<string, Tool>> {
  const { tools, toolChoice } = await render(scope);
  const resolved = await generator.resolveTools(tools, { context: scope.context });
  const given = callerTools(input?.tools);
  checkCallerTools(given, resolved.tools, toolChoice);
  if (given.length === 0) return resolved.tools;
  return new Map([...resolved.tools, ...given.map((each) => [each.name, each] as const)]);
}

/** Answers each turn with one generate call. */
function handlerOf(
  options: PromptAgentOptions,
  render: Render,
  tools: { readonly generator: Generator; readonly report: Report },
): TurnLoopHandler {
  return (session, io, runningTurn) =>
    session.run((input, turn) =>
      answer({ input, turn, io, running: runningTurn(), options, render, ...tools }),
    );
}

type ModelChunkSink = HandlerIo['respond']['modelChunk'];

/** One turn: the model answers the conversation, with tools, and what it says is added as it becomes whole. */
async function answer(call: {
  readonly input: Input;
  readonly turn: TurnInfo;
  readonly io: HandlerIo;
  readonly running: RunningTurn;
  readonly options: PromptAgentOptions;
  readonly render: Render;
  readonly generator: Generator;
  readonly report: Report;
}): Promise<TurnResult> {
  const { input, turn, io, running, options, generator, report } = call;
  const { history, custom } = running.state;
  let rendered: Awaited<ReturnType<Render>>;
  try {
    rendered = await call.render({ state: custom, context: io.context, report });
  } catch (error) {
    running.reportPromptError(error);
    throw error;
  }
  const generation = generator.startGenerate({
    ...withSettings(rendered, input.settings),
    ...(input.tools && { tools: [...(rendered.tools ?? []), ...callerTools(input.tools)] }),
    messages: history.toArray(),
    ...(input.resume &&
      input.message === undefined &&
      !running.isContinued && { resume: input.resume }),
    ...historyOf(options, running),
    ...(options.compact && { compact: options.compact }),
    ...(io.model !== undefined && { model: io.model }),
    signal: turn.signal,
    context: io.context,
    onChunk: numberedFrom(running.firstIndex, io.respond.modelChunk),
  });
  try {
    const { messages, finishReason, output } = await generation.response;
    running.appendGenerated(messages);
    return { finishReason, ...(output !== undefined && { output }) };
  } catch (error) {
    running.appendGenerated(generation.messages);
    throw error;
  }
}

/** The selection of messages for the model. What is known from memory comes last, so that no selection leaves it out. */
function historyOf(
  { history }: PromptAgentOptions,
  { withMemory }: RunningTurn,
): Pick<GenerateOptions, 'history'> {
  if (withMemory === undefined) return history === undefined ? {} : { history };
  return {
    history: async (messages, scope) =>
      await withMemory(history === undefined ? messages : await history(messages, scope)),
  };
}

/** Continues the numbers of a turn's messages, where the turn has some already. */
function numberedFrom(first: number, send: ModelChunkSink): ModelChunkSink {
  return first === 0 ? send : (chunk) => send({ ...chunk, index: first + (chunk.index ?? 0) });
}

/** The settings of a request as one turn wants them: instructions are added, the rest is overridden. */
function withSettings(
  rendered: GenerateOptions,
  { instructions, config, output, toolChoice }: TurnSettings = {},
): GenerateOptions {
  const system = rendered.system === undefined ? [] : toParts(rendered.system);
  return {
    ...rendered,
    ...(instructions !== undefined && { system: [...system, { text: instructions }] }),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(config && { config: { ...rendered.config, ...config } }),
    ...(output && {
      output: output.schema
        ? { schema: untrustedSchema(output.schema) }
        : { format: 'json' as const },
    }),
  };
}

/** The model, the tools, the skills and the output that a request would have now. */
async function describe(
  render: Render,
  { generator, skills }: { readonly generator: Generator; readonly skills: Skills | undefined },
  state: Json | undefined,
): Promise<AgentContent> {
  const { model, tools, output } = await render({ state, context: {} });
  const outputSchema = outputSchemaOf(output);
  const resolved = await generator.resolveTools(tools);
  return defined({
    outputSchema,
    model: generator.resolveModel(model).name,
    tools: [...resolved.tools.values()].map(toolInfoOf),
    skills: (await skills?.list({ context: {} }))?.map(skillInfoOf),
  });
}

function outputSchemaOf(output: GenerateSettings['output']): JsonObject | undefined {
  const { schema } = output === undefined ? {} : outputOptionsOf(output);
  if (!schema) return undefined;
  return toJson(toJsonSchema(schema, 'output'), 'outputSchema') as JsonObject;
}

function toolInfoOf({ definition, metadata }: Tool): ToolInfo {
  const { name, description, inputSchema, outputSchema } = definition;
  return defined({
    name,
    description,
    inputSchema: toJson(inputSchema, 'inputSchema') as JsonObject,
    outputSchema: outputSchema && (toJson(outputSchema, 'outputSchema') as JsonObject),
    interrupt: metadata?.interrupt === true ? true : undefined,
  });
}

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
  skills: ['text', 'object', 'list'],
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

function checkPromptAgentOptions(options: PromptAgentOptions): void {
  const refused = notForAgents.find((key) => key in options);
  if (refused !== undefined) {
    throw invalid(
      `An agent has no \`${refused}\`: it runs its tools and its stream itself. Use generate for that.`,
    );
  }
  checkOptions(options, optionNames, `agent "${options.name}"`, namesElsewhere);
  resolveOutput(options.output);
}

/** The settings that the agent shares with generate. The turn keeps some limits itself, over all its model calls. */
function settingsOf(options: PromptAgentOptions): GenerateSettings {
  const { turn = {} } = options.limits ?? {};
  const { timeout: _t, tokens: _n, cost: _m, toolCalls: _c, ...limits } = turn;
  const names = Object.keys(generateSettingNames) as (keyof GenerateSettings)[];
  const shared = Object.fromEntries(names.map((name) => [name, options[name]]));
  return defined({ ...shared, limits: Object.keys(limits).length > 0 ? limits : undefined });
}
