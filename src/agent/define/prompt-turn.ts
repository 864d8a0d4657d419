import type { Generator } from '../../generate/generator.ts';
import { toolMessage } from '../../generate/prompt/template.ts';
import { callerTools, checkCallerTools } from '../../generate/tool/caller-tools.ts';
import { closeToolRequests, planResume } from '../../generate/tool/resume.ts';
import type { Tool } from '../../generate/tool/tool.ts';
import type { Message } from '../../protocol/message.ts';
import type { Input } from '../../protocol/turn.ts';
import type { SessionState } from '../../session/session-state.ts';
import type {
  HandlerIo,
  RunningTurn,
  TurnInfo,
  TurnLoopHandler,
  TurnResult,
} from '../spec/handler.ts';
import { lastRound } from '../turn/turn-state.ts';
import type { PromptAgentOptions } from './prompt-agent-options.ts';
import type { Render } from './prompt-settings.ts';
import { withSettings } from './turn-settings.ts';

/** What an input adds to the conversation before the model is asked. */
export async function receive(
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
export async function toolsOf(
  render: Render,
  generator: Generator,
  { input, ...scope }: Parameters<Render>[0] & { readonly input?: Input },
): Promise<ReadonlyMap<string, Tool>> {
  const { tools, toolChoice } = await render(scope);
  const { context } = scope;
  // Never aborted: a source bounds its own waits.
  const { signal } = new AbortController();
  const resolved = await generator.resolveTools(tools, { context, signal, report: () => {} });
  const given = callerTools(input?.tools);
  checkCallerTools(given, resolved.tools, toolChoice);
  if (given.length === 0) return resolved.tools;
  return new Map([...resolved.tools, ...given.map((each) => [each.name, each] as const)]);
}

/** Answers each turn with one generate call. */
export function handlerOf(
  options: PromptAgentOptions,
  render: Render,
  generator: Generator,
): TurnLoopHandler {
  return (session, io, runningTurn) =>
    session.run((input, turn) =>
      answer({ input, turn, io, running: runningTurn(), options, render, generator }),
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
}): Promise<TurnResult> {
  const { input, turn, io, running, options, generator } = call;
  const { history, custom } = running.state;
  let rendered: Awaited<ReturnType<Render>>;
  try {
    rendered = await call.render({ state: custom, context: io.context });
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
    ...(options.history && { history: options.history }),
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

/** Continues the numbers of a turn's messages, where the turn has some already. */
function numberedFrom(first: number, send: ModelChunkSink): ModelChunkSink {
  return first === 0 ? send : (chunk) => send({ ...chunk, index: first + (chunk.index ?? 0) });
}
