import {
  failedPrecondition,
  invalid,
  isWaymarkError,
  type WaymarkError,
} from '../../core/error.ts';
import type { Generator } from '../../generate/generator.ts';
import { checkNamedTools, type Middleware } from '../../generate/middleware/middleware.ts';
import type { ModelRef } from '../../generate/model.ts';
import type { Prompt } from '../../generate/prompt/prompt.ts';
import type { Tool } from '../../generate/tool/tool.ts';
import { checkToolRefs, isToolSource, type ToolRef } from '../../generate/tool/tool-source.ts';
import { checkToolState, type StateOwner } from './tool-state.ts';

/** What a prompt agent needs of its generator. */
export interface Setup {
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
    throw invalid(
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
  return failedPrecondition(`Agent "${agent.name}" cannot run: ${reason}${hint}`, {
    cause,
    publicMessage: `Agent "${agent.name}" is not set up correctly.`,
  });
}

/** The error of `ready()` for a prompt that cannot be rendered. Errors of templates name their place themselves. */
export function notRendered(agent: string, cause: unknown): unknown {
  if (isWaymarkError(cause)) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return failedPrecondition(
    `The prompt of agent "${agent}" cannot be rendered. ready() renders each prompt once, with the initial state and an empty context, so a prompt must not require the context of a caller. The reason: ${reason}`,
    { cause },
  );
}

function cut(text: string): string {
  return text.length > 40 ? `${text.slice(0, 39)}…` : text;
}
