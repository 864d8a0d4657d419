import { type Plan, type Result, runEpisode } from './episode.ts';

/** Tries of one shrinking. */
const maxTries = 400;

/** The smallest plan found that fails in the same way. */
export async function shrink(
  plan: Plan,
  failure: Error,
): Promise<{ readonly plan: Plan; readonly result: Result }> {
  const kind = kindOf(failure);
  let smallest = plan;
  let result = await runEpisode(plan);
  let tries = 0;
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const candidate of smallerPlans(smallest)) {
      if (++tries > maxTries) return { plan: smallest, result };
      const outcome = await runEpisode(candidate);
      if (outcome.failure === undefined || kindOf(outcome.failure) !== kind) continue;
      smallest = candidate;
      result = outcome;
      isSmaller = true;
      break;
    }
  }
  return { plan: smallest, result };
}

/** A failure without its ids and numbers. */
function kindOf({ message }: Error): string {
  return message.replace(/[0-9a-f]{8}-[0-9a-f-]{27}|#\S+|\d+/g, '').slice(0, 60);
}

function* smallerPlans(plan: Plan): Generator<Plan> {
  const { clients, faults } = plan;
  for (const at of clients.keys()) {
    if (clients.length > 1) yield { ...plan, clients: clients.toSpliced(at, 1) };
  }
  if (plan.faultRate > 0) yield { ...plan, faultRate: 0 };
  for (const fewer of without(faults)) yield { ...plan, faults: fewer };
  for (const [at, ops] of clients.entries()) {
    for (const fewer of without(ops)) yield { ...plan, clients: clients.with(at, fewer) };
  }
  if (plan.processes > 1) yield { ...plan, processes: plan.processes - 1 };
}

/** The list without one of its halves, quarters, … and at last without single items. */
function* without<Item>(items: readonly Item[]): Generator<readonly Item[]> {
  for (
    let size = Math.ceil(items.length / 2);
    size >= 1;
    size = size === 1 ? 0 : Math.ceil(size / 2)
  ) {
    for (let at = 0; at < items.length; at += size) yield items.toSpliced(at, size);
  }
}
