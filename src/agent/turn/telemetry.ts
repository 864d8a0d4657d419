import { toErrorBody } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { count, hasMetrics, recordValue } from '../../core/metrics.ts';
import { inSpan, type Span, type SpanAttributes } from '../../core/trace.ts';
import { backend, genAi, attributes as names, operations } from '../../core/trace-names.ts';
import { tracedModel, tracedUsage } from '../../generate/answer/price.ts';
import { pendingInterrupts } from '../../protocol/messages.ts';
import type { RunMode } from '../../protocol/run.ts';
import type { FinishReason, Input, Output, Usage } from '../../protocol/turn.ts';
import { writeLog } from '../contract/observability.ts';
import type { InvocationState } from './invocation-state.ts';
import { lastRound, type Outcome, type Turn } from './turn-state.ts';

/** Traces an invocation under the name of its agent, joined to the session and to the snapshot it has come to. */
export function inInvocationSpan(
  invocation: InvocationState,
  work: () => Promise<Output>,
): Promise<Output> {
  const { spec, host, scope } = invocation;
  const { sessionId } = invocation.position;
  const attributes = (): SpanAttributes => ({
    [genAi.operation]: operations.invokeAgent,
    [genAi.agentName]: spec.name,
    [genAi.agentDescription]: spec.description,
    [genAi.agentVersion]: spec.version,
    [genAi.conversationId]: sessionId,
    [backend.sessionId]: sessionId,
    [backend.userId]: host.telemetry.userId === true ? scope.owner : undefined,
    [names.sessionId]: sessionId,
    [names.genkitAgent]: spec.name,
  });
  const options = { attributes, owner: scope.owner };
  return inSpan(`${operations.invokeAgent} ${spec.name}`, options, async (span) => {
    const startedAt = performance.now();
    const agent = { [names.agent]: spec.name };
    count('waymark.active_runs', 1, agent);
    try {
      const output = await work();
      const { run, progress, ending } = invocation;
      const { failedId, failure } = ending;
      const lastId = failedId ?? progress.snapshotIds.at(-1);
      const made = run?.detached === undefined ? lastId : run.runId;
      // A failed turn is a result, but what was asked for was not done.
      if (failure !== undefined) span.recordError(failure);
      if (span.recording) {
        const snapshots = { [names.snapshotId]: made, [names.genkitSnapshotId]: made };
        span.setAttributes({ ...usedAttributes(invocation), ...snapshots });
      }
      return output;
    } finally {
      count('waymark.active_runs', -1, agent);
      if (hasMetrics()) recordEnd(invocation, (performance.now() - startedAt) / 1000);
    }
  });
}

function usedAttributes({ progress, lastModel, ending }: InvocationState): SpanAttributes {
  const model = lastModel && tracedModel(lastModel);
  return {
    [genAi.provider]: model?.provider,
    [genAi.requestModel]: model?.id,
    ...tracedUsage(progress.usage),
    ...(ending.last && { [genAi.finishReasons]: [ending.last.finishReason] }),
  };
}

function recordEnd({ spec, lastModel, ending }: InvocationState, seconds: number): void {
  const { failure } = ending;
  recordValue('gen_ai.invoke_agent.duration', seconds, {
    [genAi.operation]: operations.invokeAgent,
    [genAi.agentName]: spec.name,
    [genAi.requestModel]: lastModel && tracedModel(lastModel).id,
    ...(failure && { [names.errorType]: toErrorBody(failure).status }),
  });
}

export function reportTurn(
  { spec, host, position, scope, run }: InvocationState,
  turn: Turn,
  outcome: Outcome,
  durationMs: number,
): void {
  const finishReason = finishReasonOf(outcome);
  if (hasMetrics()) {
    count('waymark.turns', 1, { [names.agent]: spec.name, [names.finishReason]: finishReason });
  }
  if (host.logger === undefined) return;
  const { usage, info, snapshotIds } = turn;
  const { inputTokens, outputTokens, cost } = usage;
  const fields = defined({
    agent: spec.name,
    sessionId: position.sessionId,
    turnIndex: info.turnIndex,
    owner: scope.owner,
    snapshotId: snapshotIds.at(-1) ?? run?.runId,
    finishReason,
    durationMs: Math.round(durationMs),
    inputTokens,
    outputTokens,
    cost,
  });
  writeLog(host.logger, 'info', fields, `turn ${info.turnIndex} of ${spec.name}: ${finishReason}`);
}

export function logModelCall(
  { spec, host, position }: InvocationState,
  call: { readonly model: string; readonly finishReason: FinishReason; readonly usage: Usage },
): void {
  if (host.logger === undefined) return;
  const { model, finishReason, usage } = call;
  const { inputTokens, outputTokens, cost } = usage;
  const fields = defined({
    agent: spec.name,
    sessionId: position.sessionId,
    model,
    finishReason,
    inputTokens,
    outputTokens,
    cost,
  });
  writeLog(host.logger, 'debug', fields, `model ${model}: ${finishReason}`);
}

function finishReasonOf(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'done':
      return outcome.finishReason;
    case 'stopped':
      return 'aborted';
    case 'elsewhere':
      return outcome.output.finishReason ?? 'unknown';
    default:
      return outcome.kind;
  }
}

export function nameSnapshots({ spec }: InvocationState, { snapshotIds }: Turn, span: Span): void {
  const last = snapshotIds.at(-1);
  if (last === undefined || !span.recording) return;
  span.setAttributes({
    [names.snapshotId]: last,
    [names.snapshotIds]: [...snapshotIds],
    [names.genkitSnapshotId]: last,
    [names.genkitAgent]: spec.name,
  });
}

export function inTurnSpan<Value>(
  { spec, scope: { owner }, position: { sessionId } }: InvocationState,
  { info }: Turn,
  fn: (span: Span) => Promise<Value>,
): Promise<Value> {
  const attributes = (): SpanAttributes => ({
    [genAi.agentName]: spec.name,
    [genAi.conversationId]: sessionId,
    [names.sessionId]: sessionId,
    [names.turnIndex]: info.turnIndex,
  });
  return inSpan(`turn ${info.turnIndex}`, { attributes, owner }, fn);
}

/** The content of a turn's span for development tools (`SpanRecord.content`). */
export interface TurnSpanContent {
  readonly input: Input;
  /** The snapshot that the turn continues from; absent for a first turn. */
  readonly from?: string;
  /** 1, and one more each time that another process took over the run. */
  readonly attempt: number;
  readonly mode: RunMode;
  /** How it ended; absent while it runs. */
  readonly outcome?: Outcome['kind'];
}

export function turnSpanContent(
  { lineage, run, request }: InvocationState,
  { input }: Turn,
): TurnSpanContent {
  const { fallbackSnapshotId: from } = lineage;
  return {
    input,
    ...(from !== undefined && { from }),
    attempt: run?.turnBase.run?.attempt ?? 1,
    mode: run?.detached === undefined ? request.mode : 'detached',
  };
}

/**
 * Tells the app that a saved turn waits for an answer. The caller does not wait for the listener. An interrupt inside a sub-agent is
 * told once, by the turn that called it and takes the answer.
 */
export function notifyInterrupt(invocation: InvocationState, runId: string): void {
  const { host, spec, scope, position, working, failures, request } = invocation;
  const { onInterrupt } = host;
  const requests = pendingInterrupts(lastRound(working.state.history));
  if (onInterrupt === undefined || requests.length === 0 || request.parent !== undefined) return;
  const event = defined({
    agent: spec.name,
    owner: scope.owner,
    sessionId: position.sessionId,
    runId,
    requests,
  });
  const told = (async () => onInterrupt(event))();
  host.background(told.catch((error: unknown) => failures.report(error, 'hook')));
}
