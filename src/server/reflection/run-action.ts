import type { Agent } from '../../agent/contract/agent.ts';
import type { Action } from '../../core/action.ts';
import { WaymarkError } from '../../core/error.ts';
import { defined, toJson } from '../../core/json/json.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { Operation } from '../../protocol/routes.ts';
import { init as initShape, input as inputShape } from '../../protocol/turn.ts';
import {
  abortGenkitRun,
  genkitAbort,
  genkitLookup,
  readGenkitSnapshot,
  toGenkitChunk,
  toGenkitOutput,
} from '../genkit/shapes.ts';
import { short } from '../http/answer.ts';
import { type Caller, ownerOf } from '../http/auth.ts';
import type { ServedApp } from '../http/served-app.ts';
import type { Subject } from '../http/server-context.ts';
import { invokeOptions, underRequestId } from '../stream/turn.ts';

/** An action that the development tools ask to run. */
export interface RunRequest {
  readonly key: string;
  readonly input?: unknown;
  readonly init?: unknown;
  readonly context: Readonly<Record<string, unknown>>;
  /** The idempotency key in the header; counts for turns. */
  readonly requestId?: string | undefined;
}

export interface RunActionOptions {
  readonly signal: AbortSignal;
  readonly onChunk?: (chunk: unknown) => void;
}

export interface Runnable {
  readonly descriptor: Descriptor;
  /** Which call it is, where it reaches a session; `authorize` judges it as that. */
  does?(request: Pick<RunRequest, 'input' | 'init'>): AgentCall;
  run(request: RunRequest, options: RunActionOptions): Promise<unknown>;
}

export interface AgentCall extends Subject {
  readonly operation: Operation;
  readonly agent: Agent;
}

type Descriptor = Omit<Action['descriptor'], 'streamSchema'>;

/** All actions by key: those that the app has registered, and its agents under the keys that Genkit's tools look for. */
export function listActions(app: ServedApp, caller: Caller): Record<string, Descriptor> {
  return Object.fromEntries(
    [...runnables(app, caller)].map(([key, { descriptor }]) => [key, descriptor]),
  );
}

/** The action of this key, or `NOT_FOUND`. */
export function findAction(app: ServedApp, key: string, caller: Caller): Runnable {
  const runnable = runnables(app, caller).get(key);
  if (runnable) return runnable;
  throw new WaymarkError(
    'NOT_FOUND',
    `There is no action ${short(key)}. GET /api/actions lists them.`,
  );
}

function runnables(app: ServedApp, caller: Caller): Map<string, Runnable> {
  const found = new Map<string, Runnable>();
  const does = new Map(app.agents().flatMap(companionCalls));
  for (const action of app.registry?.list() ?? []) {
    const call = does.get(action.key);
    found.set(action.key, { ...fromAction(action), ...(call && { does: call }) });
  }
  for (const agent of app.agents()) {
    for (const runnable of fromAgent(agent, caller)) found.set(runnable.descriptor.key, runnable);
  }
  return found;
}

function fromAction(action: Action): Runnable {
  const { streamSchema: _, ...descriptor } = action.descriptor;
  return {
    descriptor,
    run: ({ input, context }, { signal, onChunk }) =>
      action.run(input, { signal, context, ...defined({ onChunk }) }),
  };
}

// The agent itself goes through its own surface and not through its action, so that its owner counts here as everywhere.
function fromAgent(agent: Agent, caller: Caller): readonly Runnable[] {
  const { name, description, metadata } = agent;
  const described = { name, ...defined({ description }) };
  const owner = ownerOf(caller);
  return [
    {
      descriptor: {
        ...described,
        key: `/agent/${name}`,
        metadata: { agent: toJson({ ...metadata }, 'metadata') },
      },
      does: ({ init }) => ({ operation: 'runTurn', agent, ...subjectOf(init) }),
      async run({ input, init, context, requestId }, { signal, onChunk }) {
        const given = underRequestId(parseShape(inputShape, input, 'input'), requestId);
        const { stream, output } = agent.stream(given, {
          ...invokeOptions(parseShape(initShape, init ?? {}, 'init'), {
            ...caller,
            context: toJson({ ...context }, 'context') as Record<string, never>,
          }),
          accept: agent.metadata.watchable,
          signal,
        });
        // When the stream throws, so does this.
        output.catch(() => {});
        for await (const chunk of stream) {
          const shown = toGenkitChunk(chunk as Parameters<typeof toGenkitChunk>[0]);
          if (shown) onChunk?.(shown);
        }
        return toGenkitOutput((await output) as Parameters<typeof toGenkitOutput>[0]);
      },
    },
    {
      descriptor: { ...described, key: `/agent-snapshot/${name}` },
      does: ({ input }) => ({ operation: 'getSnapshot', agent, ...subjectOf(input) }),
      async run({ input }, { signal }) {
        const { data } = parseShape(genkitLookup, { data: input }, 'lookup');
        return await readGenkitSnapshot(agent, data, { ...owner, signal });
      },
    },
    {
      descriptor: { ...described, key: `/agent-abort/${name}` },
      does: ({ input }) => ({ operation: 'abort', agent, ...subjectOf(input) }),
      async run({ input }, { signal }) {
        const { data } = parseShape(genkitAbort, { data: input }, 'abort');
        return await abortGenkitRun(agent, data.snapshotId, { ...owner, signal });
      },
    },
  ];
}

// The actions of an agent's registered companions, by their keys.
function companionCalls(agent: Agent): [string, NonNullable<Runnable['does']>][] {
  const { name } = agent;
  const calls: [string, Operation][] = [
    [`/snapshot-store/${name}/getSnapshot`, 'getSnapshot'],
    [`/snapshot-store/${name}/listSnapshots`, 'listSnapshots'],
    [`/session-store/${name}/getSnapshot`, 'getSnapshot'],
    [`/session-store/${name}/listSnapshots`, 'listSnapshots'],
    [`/snapshot-store/${name}/abortSnapshot`, 'abort'],
    [`/session-store/${name}/getSession`, 'getSession'],
  ];
  return calls.map(([key, operation]) => [
    key,
    ({ input }) => ({ operation, agent, ...subjectOf(input) }),
  ]);
}

// The ids that a value names. Its shape is checked where it is used.
function subjectOf(value: unknown): Subject {
  if (typeof value !== 'object' || value === null) return {};
  const { sessionId, snapshotId } = value as { sessionId?: unknown; snapshotId?: unknown };
  const textOf = (id: unknown): string | undefined => (typeof id === 'string' ? id : undefined);
  return { sessionId: textOf(sessionId), snapshotId: textOf(snapshotId) };
}
