import type { ActionContext } from '../core/action.ts';
import { type LinkedSignal, linkSignals, raceSignal } from '../core/async/signal.ts';
import { type Clock, timeoutSignal } from '../core/time.ts';
import type { Message } from '../protocol/message.ts';
import { toolRequestsOf } from '../protocol/messages.ts';
import type { Usage } from '../protocol/turn.ts';
import { callModel, type ModelCallScope } from './answer/call-model.ts';
import {
  baseMessages,
  checkConversation,
  requestSettings,
  withoutForcedTool,
} from './answer/request.ts';
import {
  type Answer,
  finished,
  type GenerateResponse,
  Progress,
  toResponse,
} from './answer/response.ts';
import { isRefusal } from './answer/run-model.ts';
import type { ToolCallInfo, ToolScope } from './answer/run-tool-call.ts';
import { addResults, addResumed, runTools } from './answer/run-tools.ts';
import {
  checkTokens,
  checkToolCalls,
  checkTurns,
  type GenerateOptions,
} from './generate-options.ts';
import { generateScope, toolReplay } from './hooks.ts';
import { isContextOverflow } from './language-model/errors.ts';
import { checkResolvedNames } from './middleware/middleware.ts';
import type { Model, ModelRef, ModelRequest } from './model.ts';
import { type ResolvedOutput, resolveOutput } from './output/output.ts';
import type { Resource, ResourceRef } from './resource.ts';
import { checkExpiry, planResume } from './tool/resume.ts';
import type { Tool } from './tool/tool.ts';
import { type ResolvedTools, resolveTools, type ToolSource } from './tool/tool-source.ts';

export interface GenerateEnv {
  readonly clock: Clock;
  readonly newId: () => string;
  /** The model that is meant; the app's own if none is named. */
  resolveModel(ref: ModelRef | undefined): Model;
  resolveTool(ref: string | Tool): Tool;
  /** Refuses a tool that this call cannot use. */
  checkTool?(tool: Tool): void;
  /** Takes note of a source that is used, so that it is closed with the app. */
  addSource(source: ToolSource): void;
  resolveResource(ref: ResourceRef): Resource;
  /** The app's additions to the context of its tools. */
  toolExtras(call: ToolCallInfo): object;
}

/** A generate call that is under way. */
export interface GenerateCall<Output = unknown> {
  /** The complete response; rejects when the call fails. */
  readonly response: Promise<GenerateResponse<Output>>;
  /**
   * The messages that the call has added so far, valid for every provider at any moment: of an answer that was stopped what
   * there is of it, and no tool request without a response. This is what is left when the call fails.
   */
  readonly messages: readonly Message[];
  /** The tokens so far. */
  readonly usage: Usage;
}

/**
 * A class, as one is made for each turn: an object literal with accessors would stay in the heap until the next full collection,
 * with all that it can reach.
 */
export class StartedCall<Value> implements GenerateCall<Value> {
  readonly response: Promise<GenerateResponse<Value>>;
  readonly #progress: Progress;

  constructor(run: (progress: Progress) => Promise<GenerateResponse>) {
    this.#progress = new Progress();
    // The output of the call is read by the schema that its type comes from.
    this.response = run(this.#progress) as Promise<GenerateResponse<Value>>;
  }

  get messages(): readonly Message[] {
    return this.#progress.messages;
  }

  get usage(): Usage {
    return this.#progress.usage;
  }
}

interface Call extends ModelCallScope, ToolScope {
  readonly options: GenerateOptions;
  readonly output: ResolvedOutput;
  readonly resources: readonly Resource[];
  readonly signal: AbortSignal;
}

const defaultMaxTurns = 10;

/** Calls the model and runs the tools it asks for, until the model is done or a tool is interrupted. */
export async function runGenerate(
  env: GenerateEnv,
  options: GenerateOptions,
  progress: Progress,
): Promise<GenerateResponse> {
  const { signal, limits } = options;
  const stop =
    limits?.timeout === undefined
      ? linkSignals(signal)
      : timeoutSignal(env.clock, limits.timeout, signal);
  try {
    const outer = generateScope.get();
    const context = options.context ?? outer?.context ?? {};
    const listing = resolveTools(options.tools, {
      signal: stop.signal,
      context,
      resolveTool: env.resolveTool,
      checkTool: (tool) => env.checkTool?.(tool),
      addSource: env.addSource,
      report: (error, toolSource) => outer?.hooks?.onFailure?.(error, { toolSource }),
    });
    const resolved = listing instanceof Promise ? await listing : listing;
    const { tools, missing } = resolved;
    checkResolvedNames(options, resolved, {
      owner: 'this call',
      report: (error, tool) => outer?.hooks?.onFailure?.(error, { tool }),
    });
    const call = prepare(env, options, { progress, stop, context, tools, missing });
    const isKnown = options.context === undefined || context === outer?.context;
    if (isKnown) return await loop(call);
    return await generateScope.run({ ...outer, context }, () => loop(call));
  } catch (error) {
    // Stop what still works on this call: no caller waits for it.
    stop.abort(error);
    throw error;
  } finally {
    stop.release();
  }
}

async function loop(call: Call): Promise<GenerateResponse> {
  const { options, progress, model, limits, tools } = call;
  const { messages = [], resume, maxTurns = defaultMaxTurns, returnToolRequests = false } = options;
  checkConversation(options);
  const steps = resume && (await planResume(messages, resume, tools));
  const prepared = baseMessages(options, call);
  let base = prepared instanceof Promise ? await raceSignal(prepared, call.signal) : prepared;
  const compacted = async (): Promise<void> => {
    base = await raceSignal(Promise.resolve(baseMessages(options, call)), call.signal);
  };
  let settings = requestSettings(options, tools, call.output);
  let toolCalls = 0;

  if (steps) {
    checkExpiry(steps);
    toolCalls += steps.length;
    const waiting = addResumed(progress, await runTools(call, steps));
    if (waiting) return toResponse(model.name, progress, waiting, 'interrupted');
    settings = withoutForcedTool(settings);
    await reportIteration(progress);
  }

  for (let turn = 0; ; turn++) {
    const request = (): ModelRequest => ({ ...settings, messages: base.concat(progress.whole()) });
    const answer = await answerOf(call, request, compacted);
    const requests = toolRequestsOf(answer.message);
    if (requests.length === 0 || returnToolRequests) {
      return finished(progress, answer, call.output);
    }
    checkTurns(maxTurns, turn);
    checkTokens(limits, progress.usage);
    toolCalls += requests.length;
    checkToolCalls(limits, toolCalls);
    const outcomes = await runTools(
      call,
      requests.map((request) => ({ request })),
    );
    const waiting = addResults(progress, answer.message, outcomes);
    if (waiting) return toResponse(model.name, progress, waiting, 'interrupted');
    settings = withoutForcedTool(settings);
    await reportIteration(progress);
  }
}

async function answerOf(
  call: Call,
  request: () => ModelRequest,
  compact: () => Promise<void>,
): Promise<Answer> {
  const hooks = generateScope.get()?.hooks;
  let answer: Answer;
  try {
    answer = await callModel(call, request());
  } catch (error) {
    if (mayCompact(call, error)) {
      call.compaction.isForced = true;
      const before = request().messages.length;
      await compact();
      // Where nothing could be summarized, the same request would be refused again.
      if (request().messages.length < before) return await answerOf(call, request, compact);
    }
    // A call that the caller stopped, or that was not made, has not failed.
    if (call.options.signal?.aborted !== true && !isRefusal(error))
      hooks?.onFailure?.(error, { model: call.model.name });
    throw error;
  }
  hooks?.onAnswer?.();
  return answer;
}

/** Whether a request was too long, and the conversation has not been compacted for that yet. */
function mayCompact({ options, compaction }: Call, error: unknown): boolean {
  return options.compact !== undefined && !compaction.isForced && isContextOverflow(error);
}

async function reportIteration(progress: Progress): Promise<void> {
  const added = await generateScope.get()?.hooks?.onToolIteration?.(progress);
  for (const message of added ?? []) progress.add(message);
}

function prepare(
  env: GenerateEnv,
  options: GenerateOptions,
  state: {
    readonly progress: Progress;
    readonly stop: LinkedSignal;
    readonly context: ActionContext;
  } & ResolvedTools,
): Call {
  const { use = [], limits = {}, resources = [], onChunk } = options;
  const model = options.model ?? generateScope.get()?.model;
  toolReplay.get()?.onGenerate(model);
  return {
    ...env,
    ...state,
    options,
    signal: state.stop.signal,
    use,
    limits,
    model: env.resolveModel(model),
    resources: resources.map((resource) => env.resolveResource(resource)),
    output: resolveOutput(options.output),
    compaction: { isForced: false, made: undefined },
    emit: (chunk) => onChunk?.(chunk),
  };
}
