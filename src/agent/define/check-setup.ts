import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import { type JsonSchema, toJsonSchema } from '../../core/schema/schema.ts';
import type { Generator } from '../../generate/generator.ts';
import { checkNamedTools, type Middleware } from '../../generate/middleware/middleware.ts';
import type { ModelRef } from '../../generate/model.ts';
import type { Prompt } from '../../generate/prompt/prompt.ts';
import type { Tool } from '../../generate/tool/tool.ts';
import { checkToolRefs, isToolSource, type ToolRef } from '../../generate/tool/tool-source.ts';
import { type Session, sessionKey } from '../../session/session.ts';
import type { AgentSpec } from '../spec/spec.ts';
import { InvocationSession } from '../turn/invocation.ts';

interface Setup {
  readonly agent: StateOwner;
  readonly model?: ModelRef | undefined;
  readonly tools?: readonly ToolRef[] | undefined;
  readonly prompt?: Prompt | string | undefined;
  readonly use?: readonly Middleware[] | undefined;
}

/** Refuses at the definition what is known to be wrong then; names may be defined later. */
export function checkDefinition(
  { agent, model, tools, prompt, use }: Setup,
  generator: Generator,
): void {
  if (typeof prompt === 'string' && /\s/.test(prompt)) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `The \`prompt\` of agent "${agent.name}" must be the name of a prompt, and "${cut(prompt)}" is a text. Pass instructions as \`system\`.`,
    );
  }
  if (tools !== undefined) checkToolRefs(tools, `agent "${agent.name}"`);
  const existing = typeof prompt === 'object' ? prompt : undefined;
  generator.noteModels({ ...(model !== undefined && { model }), ...(use && { use }) });
  const ref = model ?? existing?.model;
  if (typeof ref === 'object') generator.resolveModel(ref);
  checkTools(tools ?? existing?.tools ?? [], agent);
  // A prompt that is named may have them, and is looked up later.
  if (typeof prompt === 'string') return;
  checkNamedTools(use ?? existing?.use, tools ?? existing?.tools, `agent "${agent.name}"`);
}

/**
 * Refuses an agent that has no model, that names a model, tool or prompt that does not exist, also in its middleware, or that
 * has a tool which works on another state. Called before each turn: costs no more than the lookups. `model` is the one of the call. An API key is looked for
 * only before a turn: a test or a build may use the app without one.
 */
export function checkSetup(
  setup: Setup,
  generator: Generator,
  {
    model,
    isTurn = false,
  }: { readonly model?: ModelRef | undefined; readonly isTurn?: boolean } = {},
): void {
  try {
    const { agent, prompt } = setup;
    const existing = typeof prompt === 'string' ? generator.prompt(prompt) : prompt;
    const ref = model ?? setup.model ?? existing?.model;
    const found = generator.resolveModel(ref);
    if (isTurn) found.check?.();
    const tools = setup.tools ?? existing?.tools ?? [];
    const named = tools.filter((tool) => typeof tool === 'string');
    checkTools(
      named.map((tool) => generator.resolveTool(tool)),
      agent,
    );
    const use = setup.use ?? existing?.use ?? [];
    for (const { models = [] } of use) for (const other of models) generator.resolveModel(other);
    if (typeof prompt !== 'string') return;
    checkTools(tools, agent);
    checkNamedTools(use, tools, `agent "${agent.name}"`);
  } catch (error) {
    throw misconfigured(setup, error);
  }
}

function checkTools(tools: readonly ToolRef[], agent: StateOwner): void {
  for (const tool of tools) {
    if (typeof tool === 'object' && !isToolSource(tool)) checkToolState(tool as Tool, agent);
  }
}

// A remote client learns only that the agent is not set up; its owner must see the reason.
function misconfigured({ agent, prompt }: Setup, cause: unknown): WaymarkError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const isUnknownPrompt =
    typeof prompt === 'string' && isWaymarkError(cause) && cause.message.startsWith('No prompt ');
  const hint = isUnknownPrompt ? ' Prompts of `promptDir` are loaded by `await app.ready()`.' : '';
  return new WaymarkError(
    'FAILED_PRECONDITION',
    `Agent "${agent.name}" cannot run: ${reason}${hint}`,
    {
      cause,
      publicMessage: `Agent "${agent.name}" is not set up correctly.`,
    },
  );
}

/** The error of `ready()` for a prompt that cannot be rendered. Errors of templates name their place themselves. */
export function notRendered(agent: string, cause: unknown): unknown {
  if (isWaymarkError(cause)) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new WaymarkError(
    'FAILED_PRECONDITION',
    `The prompt of agent "${agent}" cannot be rendered. ready() renders each prompt once, with the initial state and an empty context, so a prompt must not require the context of a caller. The reason: ${reason}`,
    { cause },
  );
}

function cut(text: string): string {
  return text.length > 40 ? `${text.slice(0, 39)}…` : text;
}

/** An agent, as far as its state is concerned. */
type StateOwner = Pick<AgentSpec, 'name' | 'stateSchema' | 'initialState'>;

/** The agents that a tool is known to fit. */
const fitting = new WeakMap<Tool, WeakSet<StateOwner>>();

/** Refuses a tool whose `state` is another one than the agent's, as far as the schemas and the initial state tell. */
function checkToolState(tool: Tool, agent: StateOwner): void {
  if (tool.state === undefined || fitting.get(tool)?.has(agent)) return;
  const misfit = misfitOf(tool, agent);
  if (misfit !== undefined) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `Agent "${agent.name}" cannot use tool "${tool.name}", which works on another state: ${misfit}.`,
    );
  }
  fitting.set(tool, (fitting.get(tool) ?? new WeakSet()).add(agent));
}

function misfitOf({ state }: Tool, { stateSchema, initialState }: StateOwner): string | undefined {
  if (state === undefined) return undefined;
  if (stateSchema === undefined) return 'the agent declares no `state`';
  return (
    startMisfit(state, initialState) ??
    schemaMisfit(toJsonSchema(state.schema), toJsonSchema(stateSchema))
  );
}

/** Refuses a tool that works on a state where the call has no session, or the session of an agent with another state. */
export function checkToolHere(tool: Tool): void {
  if (tool.state === undefined) return;
  const session = sessionKey.get();
  if (session === undefined) throw outsideAgent(tool.name);
  const invocation = InvocationSession.stateOf(session);
  if (invocation !== undefined) checkToolState(tool, invocation.spec);
}

/** Stands in for the session of a tool that is called outside an agent: any use of it says so. */
export function absentSession(toolName: string): Session {
  const refuse = (): never => {
    throw outsideAgent(toolName);
  };
  return new Proxy({} as Session, { get: refuse, set: refuse });
}

function outsideAgent(tool: string): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    `Tool "${tool}" uses its session, and there is none outside an agent. Give the tool to an agent, or call it inside a turn.`,
  );
}

function startMisfit(state: NonNullable<Tool['state']>, initial: unknown): string | undefined {
  try {
    state.check(initial);
    return undefined;
  } catch (error) {
    if (initial === undefined) {
      return 'its sessions start without a state. Give the agent an `initialState`, or make the `state` of the tool optional';
    }
    const reason = error instanceof Error ? error.message : String(error);
    return `its \`initialState\` does not fit. ${reason.replace(/\.$/, '')}`;
  }
}

/** The first field of the tool's state that the agent's state lacks, or has with another type. */
function schemaMisfit(wanted: JsonSchema, given: JsonSchema): string | undefined {
  const fields = fieldsOf(given);
  if (fields === undefined) return undefined;
  for (const [name, schema] of Object.entries(fieldsOf(wanted) ?? {})) {
    const field = fields[name];
    if (field === undefined) return `the agent's state has no field "${name}"`;
    const [has, wants] = [typeOf(field), typeOf(schema)];
    if (has !== undefined && wants !== undefined && has !== wants)
      return `field "${name}" is ${has} in the agent's state and ${wants} in the tool's`;
  }
  return undefined;
}

function fieldsOf({ properties }: JsonSchema): Readonly<Record<string, unknown>> | undefined {
  return typeof properties === 'object' && properties !== null
    ? (properties as Readonly<Record<string, unknown>>)
    : undefined;
}

function typeOf(schema: unknown): string | undefined {
  const type = typeof schema === 'object' && schema !== null && 'type' in schema && schema.type;
  return typeof type === 'string' ? type : undefined;
}
