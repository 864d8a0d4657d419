import type { Agent } from '../../agent/contract/agent.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import { listAllWaiting } from '../../agent/define/waiting.ts';
import type { UsageQuery } from '../../api/agent-api.ts';
import { hasStatus } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { jsonResponse } from '../http/answer.ts';
import { ownerOf } from '../http/auth.ts';
import { contentOf } from '../http/served-app.ts';
import { authorize, openAgentCall, type RequestContext } from '../http/server-context.ts';
import { type NativeOperation, operation, page, readQuery, runPage, text } from './operation.ts';

const waiting = {
  description: 'The sessions, with the tool calls that wait.',
  schema: 'WaitingPage',
} as const;

/** Operations of agents as a whole: what they can do, what they run, what they have spent. */
export const agentOperations = {
  listAgents: {
    summary: 'The agents, and what each can do.',
    answer: { description: 'The agents.', schema: 'AgentList' },
    async respond(c) {
      await authorize(c, { operation: 'listAgents' });
      return jsonResponse({ items: c.get('server').app.agents().map(describeAgent) });
    },
  } satisfies NativeOperation,

  getAgent: operation({
    summary: 'One agent.',
    answer: { description: 'The agent.', schema: 'AgentInfo' },
    run: async ({ agent }) => ({ ...describeAgent(agent), ...(await contentOf(agent)) }),
  }),

  getUsage: operation({
    summary:
      'The tokens and the cost of a session, or of all sessions of the caller with the agent.',
    query: {
      session: text('Only this session.'),
      by: text(undefined, { type: 'string', enum: ['agent', 'model', 'day'] }),
      since: text('The first day, in UTC.', { type: 'string', format: 'date' }),
    },
    answer: { description: 'What was spent.', schema: 'UsageReport' },
    subject: (c) => ({ sessionId: c.req.query('session') }),
    // The agent checks what the query says.
    run: ({ agent, options: { session, ...options } }) =>
      agent.getUsage({ ...options, ...defined({ sessionId: session }) } as UsageQuery),
  }),

  listInterrupts: operation({
    summary: 'The sessions that wait for the answer of a person, newest first.',
    query: page,
    answer: waiting,
    run: ({ agent, options }) => agent.listInterrupts(options),
  }),

  listAllInterrupts: {
    summary: 'The sessions of all agents that wait for the answer of a person, newest first.',
    query: page,
    answer: waiting,
    async respond(c) {
      const allowed: Agent[] = [];
      for (const agent of c.get('server').app.agents()) {
        if (await mayList(c, agent)) allowed.push(agent);
      }
      const owned = ownerOf(c.get('caller'));
      const specs = allowed.map((each) => internalsOf(each).spec);
      return jsonResponse(await listAllWaiting(specs, { ...owned, ...readQuery(c, page) }));
    },
  } satisfies NativeOperation,

  listRuns: operation({
    summary: 'The open runs, oldest first.',
    query: runPage,
    answer: { description: 'The runs.', schema: 'RunList' },
    run: ({ agent, options }) => agent.listRuns(options),
  }),

  listDeadRuns: operation({
    summary: 'Failed runs whose workers died too often, oldest first.',
    query: runPage,
    answer: { description: 'The runs, with the error of each attempt.', schema: 'DeadRunList' },
    run: ({ agent, options }) => agent.listDeadRuns(options),
  }),

  retryRun: operation({
    summary: 'Begins a dead run again, with the inputs it had not done, as a new run.',
    answer: { description: 'The new run.', schema: 'RetryResult' },
    run: ({ agent, snapshotId, options }) => agent.retryRun(snapshotId, options),
  }),
};

function describeAgent({ name, description, metadata }: Agent): object {
  return { name, description, metadata };
}

// Agents that this caller may not list are left out.
async function mayList(c: RequestContext, agent: Agent): Promise<boolean> {
  try {
    await openAgentCall(c, { agent, operation: 'listInterrupts' });
    return true;
  } catch (error) {
    if (hasStatus(error, 'PERMISSION_DENIED', 'NOT_FOUND')) return false;
    throw error;
  }
}
