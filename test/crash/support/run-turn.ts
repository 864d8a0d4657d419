import { textInput } from '../../../src/agent/connection/connection.ts';
import type { Agent } from '../../../src/agent/contract/agent.ts';
import type { Journal, Mode } from './journal.ts';

export interface TurnPlan {
  readonly mode: Mode;
  readonly texts: readonly string[];
  readonly sessionId: string;
  readonly journal: Journal;
}

/** Starts a turn, or a detached run of several, and waits for its end; writes down what its caller learns. */
export function runTurn(agent: Agent, plan: TurnPlan): Promise<void> {
  return plan.mode === 'detached' ? runDetached(agent, plan) : runAttached(agent, plan);
}

async function runDetached(agent: Agent, { texts, sessionId, journal }: TurnPlan): Promise<void> {
  const connection = agent.streamBidi({ sessionId });
  const queued = texts.slice(0, -1);
  // Not awaited one by one, so that a detach may come before, in and after the first turn.
  const sent = queued.map((text) => connection.sendText(text));
  const { snapshotId = '' } = await connection.detach(textInput(texts.at(-1) ?? ''));
  await Promise.all(sent);
  journal.write({
    kind: 'promised',
    mode: 'detached',
    agent: agent.name,
    sessionId,
    snapshotId,
    texts,
  });
  const { status, finishReason = '' } = await agent.wait(snapshotId);
  journal.write({ kind: 'answered', snapshotId, status, reason: finishReason });
}

async function runAttached(
  agent: Agent,
  { mode, texts, sessionId, journal }: TurnPlan,
): Promise<void> {
  const accept = mode === 'accepted';
  const { stream, output } = agent.streamText(texts[0] ?? '', { sessionId, accept });
  let snapshotId = '';
  for await (const { turnStart } of stream) {
    if (turnStart?.snapshotId === undefined) continue;
    snapshotId = turnStart.snapshotId;
    journal.write({ kind: 'promised', mode, agent: agent.name, sessionId, snapshotId, texts });
  }
  const { finishReason, error } = await output;
  journal.write({
    kind: 'answered',
    snapshotId,
    status: error?.status ?? 'succeeded',
    reason: error?.message ?? finishReason ?? '',
  });
}
