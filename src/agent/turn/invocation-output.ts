import { type Json, toJson } from '../../core/json/json.ts';
import { parseArtifact, parseMessage, parseShape } from '../../protocol/parse.ts';
import type { State } from '../../protocol/state.ts';
import { finishReason as finishReasonShape, type Output } from '../../protocol/turn.ts';
import { toPlainState } from '../../session/session-state.ts';
import { signState } from '../persistence/sign-state.ts';
import { transformAnswer, transformError, transformState } from '../persistence/transform.ts';
import type { AgentResult } from '../spec/handler.ts';
import type { InvocationState } from './invocation-state.ts';

/** What a handler returned, checked. */
export interface HandlerResult extends Omit<AgentResult, 'output'> {
  readonly output?: Json;
}

/** Checks what a handler returned. */
export function parseResult(result: AgentResult | undefined): HandlerResult | undefined {
  if (result === undefined) return undefined;
  const { message, artifacts, output, finishReason } = result;
  return {
    ...(message && { message: parseMessage(message) }),
    ...(artifacts && { artifacts: artifacts.map(parseArtifact) }),
    ...(output !== undefined && { output: toJson(output, 'The output of the handler') }),
    ...(finishReason !== undefined && {
      finishReason: parseShape(finishReasonShape, finishReason, 'finish reason of the handler'),
    }),
  };
}

/** The output of an invocation, after its transforms. */
export function outputOf(invocation: InvocationState, result: HandlerResult | undefined): Output {
  const { spec, control, position, progress, lineage, working, transform } = invocation;
  const { failure, last } = invocation.ending;
  const { snapshotIds, usage } = progress;
  const { fallbackSnapshotId } = lineage;
  const { message, artifacts } = result ?? invocation.result();
  const answer = failure === undefined ? { message, output: result?.output ?? last?.output } : {};
  const whole = (): State => toPlainState(working.state, { sessionId: position.sessionId });
  const state = spec.store === undefined ? clientHeld(invocation) : undefined;
  // A stop between two turns changes nothing about the one that has ended.
  const ended = last?.finishReason ?? (control.cause && 'aborted');
  const finishReason = failure === undefined ? ended : 'failed';
  return {
    sessionId: position.sessionId,
    ...(fallbackSnapshotId !== undefined && { snapshotId: fallbackSnapshotId }),
    ...(snapshotIds.length > 0 && { snapshotIds: [...snapshotIds] }),
    ...(state && { state }),
    ...transformAnswer(transform, whole, {
      ...answer,
      artifacts,
      snapshotId: fallbackSnapshotId,
    }),
    ...(finishReason && { finishReason }),
    ...(Object.keys(usage).length > 0 && { usage }),
    // Callers in this process get message, stack and cause. As JSON it has only what remote clients may see.
    ...(failure && { error: transformError(transform, failure) }),
  };
}

function clientHeld({
  spec,
  host,
  request: { owner },
  position: { sessionId },
  working,
  transform,
}: InvocationState): State | undefined {
  const state = transformState(transform, toPlainState(working.state, { sessionId }));
  if (state === undefined || spec.clientState === undefined) return state;
  const subject = { agent: spec.name, owner, now: host.clock.now() };
  return { ...state, seal: signState(spec.clientState, subject, state) };
}
