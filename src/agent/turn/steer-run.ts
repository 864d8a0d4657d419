import { WaymarkError } from '../../core/error.ts';
import type { SteerResult } from '../../protocol/requests.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Input } from '../../protocol/turn.ts';
import type { Scope } from '../../store/contract/store.ts';
import type { AgentHost } from '../persistence/host.ts';
import { checkPromptInput } from '../spec/input.ts';
import { type AgentSpec, fullStore } from '../spec/spec.ts';
import { steeredBy } from './steered-message.ts';
import { isSteerable } from './take-steering.ts';

/** Adds the message of an input to the inbox of a run, wherever it is worked on. */
export async function steerRun(
  { spec, host, scope }: { spec: AgentSpec; host: AgentHost; scope: Scope },
  runId: string | undefined,
  input: Input,
): Promise<SteerResult> {
  const store = fullStore(spec);
  if (!isSteerable({ spec }) || store?.runs?.steer === undefined) throw cannotSteer(spec);
  checkPromptInput(input);
  const { message, requestId: id = host.newId() } = input;
  if (message === undefined) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      'Only a message can be added to a running turn. Answer an interrupt with `resume`.',
    );
  }
  if (runId === undefined) throw ended();
  if (await store.runs.steer(scope, runId, { id, message })) return { id, status: 'queued' };
  const snapshot = await store.getSnapshot(scope, { snapshotId: runId });
  if (snapshot === undefined) {
    throw new WaymarkError(
      'NOT_FOUND',
      `There is no run "${runId.slice(0, 64)}" of agent "${spec.name}".`,
    );
  }
  const { sessionId } = snapshot;
  const keeps = spec.concurrency === 'wait';
  // In this order: the message leaves the inbox in the write that makes it part of the head.
  const left = (keeps && (await store.runs.readLeftInbox?.(scope, sessionId))) || [];
  if (left.some((each) => each.id === id && each.runId === runId)) return { id, status: 'next' };
  const sent = { id, runId };
  if (hasTaken(snapshot, sent)) return { id, status: 'taken' };
  const head = keeps ? await store.getSnapshot(scope, { sessionId }) : undefined;
  if (hasTaken(head, sent)) return { id, status: 'taken' };
  throw ended();
}

function hasTaken(
  snapshot: Snapshot | undefined,
  { id, runId }: { readonly id: string; readonly runId: string },
): boolean {
  const messages = snapshot?.state?.messages ?? [];
  return messages.some((message) => {
    const steered = steeredBy(message);
    return steered?.id === id && steered.runId === runId;
  });
}

function ended(): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    'The turn has ended, or is being stopped, and has not taken the message. Send it as the next turn.',
  );
}

function cannotSteer(spec: AgentSpec): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    `Nothing can be added to a running turn of agent "${spec.name}": its store has no inboxes. Use a store that has, such as sqliteStore.`,
  );
}
