import type { ActionContext } from '../../core/action.ts';
import { raceSignal } from '../../core/async/signal.ts';
import { invalid, isWaymarkError, messageOf, WaymarkError } from '../../core/error.ts';
import { kindOf } from '../../core/options.ts';
import type { Tool } from './tool.ts';

/** The argument of a tool source. */
export interface ToolSourceScope {
  /** The caller's context, such as the user. */
  readonly context: ActionContext;
  /** Aborts when the turn is stopped. */
  readonly signal: AbortSignal;
  /** Tells the app's `onError` of something that does not stop the source, such as one tool that cannot be used. */
  report(error: unknown): void;
}

/**
 * Tools that are not known when an agent is defined, such as those of an MCP server. It stands next to tools in `tools` of
 * agents, prompts and generate calls.
 */
export interface ToolSource {
  /** The name, for errors and logs. */
  readonly name: string;
  /**
   * The tools of one request. Called once for each generate call, and by `ready()`: keep what takes long to find. To reject
   * with INVALID_ARGUMENT fails the call, as for a mistake in the settings. After any other failure, the call continues
   * without these tools, and `onError` is called.
   */
  list(scope: ToolSourceScope): Promise<readonly Tool[]>;
  /** Releases connections and processes. Called when an app closes that used the source. */
  close?(): Promise<void>;
  /** The state of its connections: one, or one for each user. */
  status?(): readonly ToolSourceStatus[];
  /**
   * Whether all users get the same tools. Then a tool that `toolApproval` names and the source does not have is refused; else
   * it is reported to `onError`, once. @default false
   */
  readonly isShared?: boolean;
  /** The source whose tools this one selects from. Only that one is listed and closed by the app. */
  readonly base?: ToolSource;
}

/** The state of one connection of a tool source. */
export interface ToolSourceStatus {
  /** `idle`: it has not been needed yet, or was closed; it connects when it is used. */
  readonly state: 'idle' | 'connecting' | 'connected' | 'failed';
  /** The user whose connection it is, where each has their own. */
  readonly user?: string;
  /** Its tools as they were last listed; `undefined` before that. */
  readonly tools: readonly Tool[] | undefined;
  /** The last failure of connecting or listing, also after a later success. */
  readonly lastError?: { readonly error: unknown; readonly at: number };
  /** When it can connect again after a failure, in milliseconds since the epoch. */
  readonly retryAt?: number;
}

/** An entry of `tools`: a registered name, the tool itself, or a source of tools. `never`: whatever its state. */
export type ToolRef<State = never> = string | Tool<unknown, unknown, State> | ToolSource;

/** The tools behind the entries of `tools`. */
export interface ResolvedTools {
  readonly tools: ReadonlyMap<string, Tool>;
  /** The sources that did not answer, for the message to a model that asks for one of their tools. */
  readonly missing: readonly string[];
  /** The source of each tool that came from one. */
  readonly sources?: ReadonlyMap<string, ToolSource>;
}

export interface ToolsScope extends Omit<ToolSourceScope, 'report'> {
  resolveTool(ref: string | Tool): Tool;
  /** Refuses a tool that cannot be used here. */
  checkTool?(tool: Tool): void;
  /** Takes note of a source that is used, so that it is closed with the app. */
  addSource(source: ToolSource): void;
  report(error: unknown, source: string): void;
}

const noTools: ResolvedTools = { tools: new Map(), missing: [] };

/** The tools that are meant, by name. Without a source there is nothing to wait for. */
export function resolveTools(
  refs: readonly ToolRef[] | undefined,
  scope: ToolsScope,
): ResolvedTools | Promise<ResolvedTools> {
  if (refs === undefined || refs.length === 0) return noTools;
  checkToolRefs(refs, 'a call');
  if (refs.some(isToolSource)) return withSources(refs, scope);
  const tools = new Map<string, Tool>();
  for (const ref of refs) {
    const tool = scope.resolveTool(ref as string | Tool);
    scope.checkTool?.(tool);
    addTool(tools, tool);
  }
  return { tools, missing: [] };
}

/** Refuses entries of `tools` that are no tools, such as those of another library; `whose` names the agent or call. */
export function checkToolRefs(refs: unknown, whose: string): void {
  if (!Array.isArray(refs)) {
    throw invalid(
      `The \`tools\` of ${whose} must be a list, such as [weather]. Each tool has its name in its definition.`,
    );
  }
  for (const [at, ref] of refs.entries()) {
    if (typeof ref === 'string' || isToolSource(ref) || isTool(ref)) continue;
    throw invalid(`\`tools[${at}]\` of ${whose} ${whyNoTool(ref)}`);
  }
}

export function isToolSource(ref: unknown): ref is ToolSource {
  return typeof ref === 'object' && ref !== null && 'list' in ref && typeof ref.list === 'function';
}

function isTool(ref: unknown): boolean {
  return typeof ref === 'object' && ref !== null && 'definition' in ref && 'run' in ref;
}

function whyNoTool(ref: unknown): string {
  const define = 'defineTool({ name, description, input }, async (input) => …)';
  if (typeof ref === 'function') return `is a function. Make it a tool: ${define}.`;
  if (typeof ref !== 'object' || ref === null) return `is ${kindOf(ref)}, and must be a tool.`;
  if ('streamBidi' in ref) return 'is an agent. Make it a tool: agentTool(agent).';
  if ('execute' in ref || 'inputSchema' in ref || 'parameters' in ref) {
    return `is a tool of another library, such as the AI SDK. Define it here, with its schema as \`input\` and its \`execute\` as the function: ${define}.`;
  }
  return `is not a tool. Make one: ${define}.`;
}

async function withSources(refs: readonly ToolRef[], scope: ToolsScope): Promise<ResolvedTools> {
  const tools = new Map<string, Tool>();
  const sources = new Map<string, ToolSource>();
  const missing: string[] = [];
  const lists = await Promise.all(refs.map((ref) => listOf(ref, scope)));
  for (const [index, ref] of refs.entries()) {
    const list = lists[index];
    const source = isToolSource(ref) ? ref : undefined;
    if (list === undefined) missing.push(source?.name ?? '');
    // A provider's cache begins with the tools, and servers list them in any order.
    for (const tool of (list ?? []).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      scope.checkTool?.(tool);
      addTool(tools, tool, [sources.get(tool.name)?.name, source?.name]);
      if (source !== undefined) sources.set(tool.name, source);
    }
  }
  return { tools, missing, sources };
}

/** The tools behind one entry; `undefined` if its source failed. */
async function listOf(ref: ToolRef, scope: ToolsScope): Promise<readonly Tool[] | undefined> {
  if (!isToolSource(ref)) return [scope.resolveTool(ref as string | Tool)];
  const { context, signal } = scope;
  const report = (error: unknown): void => scope.report(error, ref.name);
  scope.addSource(ref.base ?? ref);
  try {
    return await raceSignal(ref.list({ context, signal, report }), signal);
  } catch (error) {
    if (signal.aborted || (isWaymarkError(error) && error.status === 'INVALID_ARGUMENT')) {
      throw error;
    }
    report(error);
    return undefined;
  }
}

function addTool(
  tools: Map<string, Tool>,
  tool: Tool,
  owners: readonly (string | undefined)[] = [],
): void {
  const { name } = tool;
  const before = tools.get(name);
  if (before !== undefined && before !== tool) throw collision(name, owners);
  tools.set(name, tool);
}

function collision(name: string, owners: readonly (string | undefined)[]): WaymarkError {
  const named = owners.map((owner) => (owner === undefined ? 'a tool of its own' : `"${owner}"`));
  const whose = owners.some((owner) => owner !== undefined)
    ? `: from ${named.join(' and ')}. Rename one of them, or leave it out.`
    : '.';
  return invalid(`Two tools are called "${name}"${whose}`);
}

/** Closes sources; all of them, also if one fails. */
export async function closeSources(sources: Iterable<ToolSource>): Promise<void> {
  const closed = await Promise.allSettled([...sources].map((source) => source.close?.()));
  const failed = closed.find((result) => result.status === 'rejected');
  if (failed === undefined) return;
  throw new WaymarkError(
    'INTERNAL',
    `A tool source could not be closed: ${messageOf(failed.reason)}`,
    {
      cause: failed.reason,
    },
  );
}
