import { closest, likely } from '../../core/closest.ts';
import { invalid, type WaymarkError } from '../../core/error.ts';
import { getOrMake } from '../../core/get-or-make.ts';
import type { Json } from '../../core/json/json.ts';
import type { Clock } from '../../core/time.ts';
import type { ToolRequest } from '../../protocol/message.ts';
import type { Model, ModelCall, ModelRef, ModelRequest, ModelResponse } from '../model.ts';
import type { Tool } from '../tool/tool.ts';
import type { ToolContext } from '../tool/tool-context.ts';
import {
  isToolSource,
  type ResolvedTools,
  type ToolRef,
  type ToolSource,
} from '../tool/tool-source.ts';

/** A model call on its way through the middleware. */
export interface ModelStep {
  /** The model to call. */
  readonly model: Model;
  /** The request. */
  readonly request: ModelRequest;
  /** The signal and the stream of the call. */
  readonly call: ModelCall;
  /** Whether a reader has seen some of this answer already, so that starting over would say it twice. */
  hasStreamed(): boolean;
  /** The model under a name, or an AI SDK model as one of ours. */
  resolveModel(ref: ModelRef): Model;
  /** The clock of the app. */
  readonly clock: Clock;
}

/** A tool call on its way through the middleware. */
export interface ToolStep {
  /** The tool to call. */
  readonly tool: Tool;
  /** The request of the model. */
  readonly request: ToolRequest;
  /** The second argument of the tool. */
  readonly context: ToolContext;
}

/** Wraps every model call and every tool call. Each hook calls `next` to continue, and may change the step. */
export interface Middleware {
  /** The name. */
  readonly name?: string;
  /** The tools that it names. One that does not exist is refused when the agent is defined or gets ready, and before a turn. */
  readonly tools?: readonly string[];
  /** The models that it names. One that does not exist is refused when the app gets ready, and before a turn. */
  readonly models?: readonly ModelRef[];
  /** Wraps each model call. */
  readonly model?: (
    step: ModelStep,
    next: (step: ModelStep) => Promise<ModelResponse>,
  ) => Promise<ModelResponse>;
  /** Wraps each tool call. */
  readonly tool?: (step: ToolStep, next: (step: ToolStep) => Promise<Json>) => Promise<Json>;
}

/** The model calls of all middleware as one, the first outermost. */
export function composeModel(
  use: readonly Middleware[],
  last: (step: ModelStep) => Promise<ModelResponse>,
): (step: ModelStep) => Promise<ModelResponse> {
  return use.reduceRight((next, { model }) => (model ? (step) => model(step, next) : next), last);
}

/** The tool calls of all middleware as one, the first outermost. */
export function composeTool(
  use: readonly Middleware[],
  last: (step: ToolStep) => Promise<Json>,
): (step: ToolStep) => Promise<Json> {
  return use.reduceRight((next, { tool }) => (tool ? (step) => tool(step, next) : next), last);
}

/**
 * Refuses middleware that names a tool which is not among those of `owner`: an approval that no call needs would be no
 * approval. With a tool source among them, nothing is known yet.
 */
export function checkNamedTools(
  use: readonly Middleware[] = [],
  refs: readonly ToolRef[] = [],
  owner: string,
): void {
  if (refs.some(isToolSource)) return;
  const names = refs.map((ref) => (typeof ref === 'string' ? ref : ref.name));
  for (const middleware of use) {
    const unknown = middleware.tools?.find((name) => !names.includes(name));
    if (unknown !== undefined) throw unknownTool(middleware, unknown, names, owner);
  }
}

/**
 * The names that each source had once. A tool of a source may go away later; one that was never there is a mistake. What the
 * source of another agent has does not count, even if both agents share the middleware.
 */
const found = new WeakMap<ToolSource, Set<string>>();

/** The names that were reported. They are still unknown: a source that all users share is refused because of them. */
const reported = new WeakMap<Middleware, WeakMap<ToolSource, Set<string>>>();

/**
 * As `checkNamedTools`, once the tool sources have answered. Where users get different tools, a name may be one that this
 * user does not have: it is reported, once.
 */
export function checkResolvedNames(
  {
    use = [],
    tools: refs = [],
  }: {
    readonly use?: readonly Middleware[];
    readonly tools?: readonly ToolRef[];
  },
  { tools, missing, sources: origins }: ResolvedTools,
  {
    owner,
    report,
  }: {
    readonly owner: string;
    readonly report?: (error: WaymarkError, tool: string) => void;
  },
): void {
  const sources = refs.filter(isToolSource);
  const perUser = sources.find(({ isShared }) => isShared !== true);
  for (const middleware of use) {
    for (const name of middleware.tools ?? []) {
      const origin = origins?.get(name);
      if (origin !== undefined) getOrMake(found, origin, () => new Set()).add(name);
      // A source that has not answered may have it, and none of its tools can be called.
      if (tools.has(name) || missing.length > 0) continue;
      if (sources.some((source) => found.get(source)?.has(name))) continue;
      const error = unknownTool(middleware, name, [...tools.keys()], owner);
      if (perUser === undefined) throw error;
      if (report === undefined) continue;
      const before = getOrMake(reported, middleware, () => new WeakMap());
      // Each call may have a new selection.
      const names = getOrMake(before, perUser.base ?? perUser, () => new Set());
      if (!names.has(name)) report(error, name);
      names.add(name);
    }
  }
}

function unknownTool(
  { name: whose = 'middleware' }: Middleware,
  name: string,
  names: readonly string[],
  owner: string,
): WaymarkError {
  const meant = likely(name, names);
  const existing = closest(name, names).slice(0, 10).join(', ');
  const hint = meant === undefined ? `It has ${existing || 'none'}.` : `Did you mean "${meant}"?`;
  return invalid(
    `The ${whose} of ${owner} names the tool "${name}", which ${owner} does not have. ${hint} For tools that are not always there, pass a function instead of names.`,
  );
}
