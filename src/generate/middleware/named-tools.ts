import { closest, likely } from '../../core/closest.ts';
import { WaymarkError } from '../../core/error.ts';
import { isToolSource, type ResolvedTools, type ToolRef } from '../tool-source.ts';
import type { Middleware } from './middleware.ts';

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

/** The names that were found once. A tool of a source may go away later; one that was never there is a mistake. */
const found = new WeakMap<Middleware, Set<string>>();

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
  { tools, missing }: ResolvedTools,
  {
    owner,
    report,
  }: {
    readonly owner: string;
    readonly report?: (error: WaymarkError, tool: string) => void;
  },
): void {
  for (const middleware of use) {
    if (middleware.tools === undefined) continue;
    const known = found.get(middleware) ?? new Set();
    found.set(middleware, known);
    for (const name of middleware.tools) {
      if (tools.has(name)) known.add(name);
      // A source that has not answered may have it, and none of its tools can be called.
      if (known.has(name) || missing.length > 0) continue;
      const error = unknownTool(middleware, name, [...tools.keys()], owner);
      if (!refs.some((ref) => isToolSource(ref) && ref.isShared !== true)) throw error;
      report?.(error, name);
      if (report !== undefined) known.add(name);
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
  return new WaymarkError(
    'INVALID_ARGUMENT',
    `The ${whose} of ${owner} names the tool "${name}", which ${owner} does not have. ${hint} For tools that are not always there, pass a function instead of names.`,
  );
}
