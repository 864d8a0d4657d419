import type { UsageQuery } from '../../api/agent-api.ts';
import { WaymarkError } from '../../core/error.ts';
import { checkId } from '../../protocol/ids.ts';
import type { UsageReport } from '../../protocol/requests.ts';
import { addUsage } from '../../protocol/usage.ts';
import type { Scope, SpendSupport } from '../../store/contract/store.ts';
import { parseDay } from '../../store/rules/spend.ts';

const groups: readonly unknown[] = ['agent', 'model', 'day'];

/** What an owner has spent with an agent. */
export async function readUsage(
  spend: SpendSupport,
  { owner, agent }: Scope,
  { sessionId, by, since }: UsageQuery,
): Promise<UsageReport> {
  if (sessionId !== undefined) checkId(sessionId, 'a session id');
  if (by !== undefined && !groups.includes(by)) {
    throw new WaymarkError('INVALID_ARGUMENT', 'Usage is summed up by "agent", "model" or "day".');
  }
  const items = await spend.sums(by ?? 'model', {
    owner: owner ?? null,
    agent,
    ...(sessionId !== undefined && { sessionId }),
    ...(since !== undefined && { sinceDay: parseDay(since) }),
  });
  return {
    calls: items.reduce((sum, { calls }) => sum + calls, 0),
    usage: items.reduce((sum, { usage }) => addUsage(sum, usage), {}),
    ...(by !== undefined && { items: [...items] }),
  };
}
