import { closest, likely } from '../../core/closest.ts';
import { WaymarkError } from '../../core/error.ts';
import { checkOptions } from '../../core/options.ts';
import type { ToolRequest } from '../../protocol/message.ts';
import type { Tool } from '../tool/tool.ts';
import { type InterruptDeadline, requireApproval } from '../tool/tool-context.ts';
import {
  isToolSource,
  type ResolvedTools,
  type ToolRef,
  type ToolSource,
} from '../tool/tool-source.ts';
import type { Middleware } from './middleware.ts';

/** Which tools need an approval: names, or a test of each request and its tool. */
export type ApprovalRule =
  | readonly string[]
  | ((request: ToolRequest, tool: Tool) => boolean | Promise<boolean>);

/**
 * Interrupts tools before they run, with `{ approval: { tool, input } }`. A restart with `metadata.resumed` of `true` or
 * `{ approved: true }` runs the tool; `{ approved: false, reason? }` tells the model that it was declined. With a deadline, an
 * approval that comes too late is refused. Names must be those of tools that the agent has; a function can test any request.
 *
 * @example
 * app.defineAgent({ name: 'bank', system: 'Help.', tools: [transfer], use: [toolApproval(['transfer'])] });
 */
export function toolApproval(
  rule: ApprovalRule,
  deadline: Omit<InterruptDeadline, 'expiresAt'> = {},
): Middleware {
  checkRule(rule);
  checkOptions(deadline, { expiresIn: true, onExpiry: true }, 'toolApproval()');
  return {
    name: 'tool approval',
    ...(typeof rule !== 'function' && { tools: rule }),
    async tool(step, next) {
      const { request, context, tool } = step;
      if (await needsApproval(rule, request, tool)) requireApproval(request, context, deadline);
      return next(step);
    },
  };
}

// A rule of another form would match no tool, and every tool would run without an approval.
function checkRule(rule: ApprovalRule): void {
  const isList = Array.isArray(rule) && rule.every((name) => typeof name === 'string');
  if (isList || typeof rule === 'function') return;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    "toolApproval() takes names of tools, such as toolApproval(['refund']), or a function of each request.",
  );
}

async function needsApproval(
  rule: ApprovalRule,
  request: ToolRequest,
  tool: Tool,
): Promise<boolean> {
  return typeof rule === 'function' ? rule(request, tool) : rule.includes(request.name);
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
      if (origin !== undefined) entry(found, origin, () => new Set()).add(name);
      // A source that has not answered may have it, and none of its tools can be called.
      if (tools.has(name) || missing.length > 0) continue;
      if (sources.some((source) => found.get(source)?.has(name))) continue;
      const error = unknownTool(middleware, name, [...tools.keys()], owner);
      if (perUser === undefined) throw error;
      if (report === undefined) continue;
      const before = entry(reported, middleware, () => new WeakMap());
      // A selection may be made anew for each call.
      const names = entry(before, perUser.base ?? perUser, () => new Set());
      if (!names.has(name)) report(error, name);
      names.add(name);
    }
  }
}

function entry<Key extends WeakKey, Value>(
  map: WeakMap<Key, Value>,
  key: Key,
  create: () => Value,
): Value {
  const value = map.get(key) ?? create();
  map.set(key, value);
  return value;
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
  return new WaymarkError(
    'INVALID_ARGUMENT',
    `The ${whose} of ${owner} names the tool "${name}", which ${owner} does not have. ${hint} For tools that are not always there, pass a function instead of names.`,
  );
}
