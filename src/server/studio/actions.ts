import * as v from 'valibot';
import { absentSession } from '../../agent/define/tool-state.ts';
import { type TriedTool, tryTool } from '../../agent/define/try-tool.ts';
import { raceSignal } from '../../core/async/signal.ts';
import { errorText, messageOf, toErrorBody, WaymarkError } from '../../core/error.ts';
import { defined, type JsonObject } from '../../core/json/json.ts';
import { runToolOnce, type ToolOnceOptions } from '../../generate/tool/run-tool-once.ts';
import type { Tool } from '../../generate/tool/tool.ts';
import type { ToolSource, ToolSourceStatus } from '../../generate/tool/tool-source.ts';
import { jsonObject, jsonValue } from '../../protocol/json-value.ts';
import type { rerun } from '../../replay/rerun.ts';
import { jsonResponse, short } from '../http/answer.ts';
import { ownerOf } from '../http/auth.ts';
import { readBody } from '../http/body.ts';
import { authorize, findAgent, type RequestContext, type Router } from '../http/server-context.ts';
import { studioCaller } from './owners.ts';

const toolCall = v.object({
  /** Chosen by the page for each press of the button. */
  id: v.pipe(v.string(), v.minLength(8), v.maxLength(64)),
  /** Whose tool it is: an agent's, or a tool source's. */
  agent: v.optional(v.string()),
  source: v.optional(v.string()),
  tool: v.string(),
  input: v.optional(jsonObject, {}),
  answer: v.optional(v.object({ interrupted: jsonValue, resumed: jsonValue })),
});

type ToolCall = v.InferOutput<typeof toolCall>;

interface FailedTool {
  readonly failed: {
    readonly status: string;
    readonly message: string;
    /** With the causes. Only for the person at this machine. */
    readonly stack: string;
  };
}

const maxRemembered = 100;
const maxUsers = 50;

/**
 * `GET /studio/sources`: the tool sources of the app with their state. `POST /studio/tools/run`: calls one tool. A call that
 * arrives again, by a reload or a dropped connection, gets the result of the first one; the tool is not called twice.
 */
export function mountTools(router: Router): void {
  const runs = new Map<string, Promise<TriedTool | FailedTool>>();

  router.get('/studio/sources', async (c) => {
    await authorize(c, { caller: {}, operation: 'listAgents' });
    return jsonResponse({ items: sourcesOf(c).map(describeSource) });
  });
  router.post('/studio/tools/run', async (c) => {
    const body = await readBody(c, toolCall, 'tool call');
    const { app } = c.get('server');
    const agent = body.agent === undefined ? undefined : findAgent(app.agents(), body.agent);
    await authorize(c, { caller: {}, agent, operation: 'runTurn' });
    const { signal } = c.req.raw;
    const { tool: name, input } = body;
    const call = (options: ToolOnceOptions): Promise<TriedTool> =>
      agent
        ? tryTool(agent, { name, input }, options)
        : callSource(findSource(sourcesOf(c), body.source ?? ''), body, options);
    const run = runs.get(body.id) ?? settled(call, { ref: body.id, signal, answer: body.answer });
    remember(runs, body.id, run);
    return jsonResponse(await run);
  });
}

function remember<Value>(runs: Map<string, Value>, id: string, run: Value): void {
  runs.set(id, run);
  const [oldest] = runs.keys();
  if (runs.size > maxRemembered && oldest !== undefined) runs.delete(oldest);
}

async function settled(
  call: (options: ToolOnceOptions) => Promise<TriedTool>,
  options: ToolOnceOptions & { readonly signal: AbortSignal },
): Promise<TriedTool | FailedTool> {
  try {
    return await raceSignal(call(options), options.signal);
  } catch (error) {
    const { status } = toErrorBody(error);
    return { failed: { status, message: messageOf(error), stack: errorText(error) } };
  }
}

async function callSource(
  source: ToolSource,
  { tool: name, input }: ToolCall,
  options: ToolOnceOptions,
): Promise<TriedTool> {
  const signal = options.signal ?? new AbortController().signal;
  const tools = await source.list({ context: {}, signal, report: () => {} });
  const tool = tools.find((each) => each.name === name);
  if (tool === undefined) {
    throw new WaymarkError('NOT_FOUND', `"${source.name}" has no tool ${short(name)} now.`);
  }
  return runToolOnce(tool, input, { ...options, extras: { session: absentSession(name) } });
}

function findSource(sources: readonly ToolSource[], name: string): ToolSource {
  const found = sources.find((source) => source.name === name);
  if (found) return found;
  const message = `There is no tool source ${short(name)}. Name an agent or a source.`;
  throw new WaymarkError('NOT_FOUND', message);
}

function sourcesOf(c: RequestContext): readonly ToolSource[] {
  return c.get('server').app.toolSources?.() ?? [];
}

function describeSource(source: ToolSource): object {
  const connections = source.status?.().slice(-maxUsers).map(describeConnection);
  return { name: source.name, connections };
}

function describeConnection({ tools, lastError, ...status }: ToolSourceStatus): object {
  const error = lastError && {
    at: new Date(lastError.at).toISOString(),
    message: messageOf(lastError.error),
    stack: errorText(lastError.error),
  };
  return { ...status, tools: tools?.map(describeTool), lastError: error };
}

function describeTool({ definition, metadata }: Tool): object {
  const { name, description, inputSchema } = definition;
  const mcp = metadata?.mcp as JsonObject | undefined;
  return { name, description, inputSchema, hints: mcp?.annotations };
}

const rerunRequest = v.object({
  agent: v.string(),
  snapshotId: v.string(),
  scope: v.optional(v.picklist(['turn', 'conversation']), 'turn'),
  tools: v.optional(v.picklist(['recorded', 'live']), 'recorded'),
  model: v.optional(v.string()),
  system: v.optional(v.string()),
  config: v.optional(jsonObject),
});

/** Runs turns again with another model, prompt or settings: the person at this machine decides what clients cannot. */
export type Rerun = typeof rerun;

/** `POST /studio/rerun`: runs a turn or a conversation again, in a separate session. */
export function mountRerun(router: Router, runAgain: Rerun): void {
  router.post('/studio/rerun', async (c) => {
    const body = await readBody(c, rerunRequest, 'rerun');
    const { agent: name, model, system, config, ...rest } = body;
    const agent = findAgent(c.get('server').app.agents(), name);
    const { snapshotId } = body;
    const caller = studioCaller(c);
    for (const operation of ['getSnapshot', 'fork', 'runTurn'] as const) {
      await authorize(c, { caller, agent, snapshotId, operation });
    }
    const changed = { ...rest, ...defined({ model, system, config }) };
    const options = { signal: c.req.raw.signal, ...ownerOf(caller) };
    return jsonResponse(await runAgain(agent, changed, options));
  });
}
