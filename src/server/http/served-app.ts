import type { Agent } from '../../agent/contract/agent.ts';
import type { ErrorInfo } from '../../agent/contract/error-reports.ts';
import type { AgentContent } from '../../agent/contract/spec.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import type { Action } from '../../core/action.ts';
import { failedPrecondition } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import type { Registry } from '../../core/registry.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';
import { findJson } from '../../generate/output/find-json.ts';
import type { ToolSource } from '../../generate/tool/tool-source.ts';
import type { Message } from '../../protocol/message.ts';
import { textOf } from '../../protocol/messages.ts';
import type { ToolInfo } from '../../protocol/requests.ts';
import type { Webhooks } from '../../webhook/webhooks.ts';
import { short } from './answer.ts';

/** The part of an app that the server uses; `waymark({…})` gives it. */
export interface ServedApp {
  /** All agents, in the order of their definition. */
  agents(): readonly Agent[];
  /** The actions that the reflection dialect lists and runs; it is left out without them. */
  readonly registry?: Registry<Action>;
  /** Sends the push notifications of A2A; it has none without. */
  readonly webhooks?: Webhooks | undefined;
  /** The store of its sessions; while that is encrypted, Studio writes no recorded calls to disk. */
  readonly store?: object | undefined;
  /** Where background runs are worked on; its status is part of the health check. */
  readonly engine?: { status(): Promise<object> };
  /** The tool sources that its agents use; Studio shows their state. */
  toolSources?(): readonly ToolSource[];
  /** Tells of each failure in the app, until the returned function is called; it is logged. */
  subscribeToErrors?(listener: (error: unknown, info: ErrorInfo) => unknown): () => void;
}

export function hasStore({ metadata }: Agent): boolean {
  return metadata.stateManagement === 'server';
}

/**
 * Refuses names of agents that a protocol cannot offer, when the server starts. `reasonAgainst` says why an agent cannot be
 * offered, after its name.
 */
export function checkOffered(
  app: ServedApp,
  protocol: string,
  names: readonly string[] = [],
  reasonAgainst: (agent: Agent) => string | undefined = () => undefined,
): void {
  for (const name of names) {
    const agent = app.agents().find((each) => each.name === name);
    const reason = agent
      ? reasonAgainst(agent)
      : 'but the app has no such agent. Define it before the server starts.';
    if (reason === undefined) continue;
    const message = `${protocol}.agents names ${short(name)}, ${reason}`;
    throw failedPrecondition(message);
  }
}

/** The content of an agent, as far as it is known outside of a call: a prompt may need values that only a call has. */
export async function contentOf(agent: Agent): Promise<AgentContent> {
  try {
    return (await internalsOf(agent).spec.describe?.()) ?? {};
  } catch {
    return {};
  }
}

export async function toolsOf(agent: Agent): Promise<readonly ToolInfo[]> {
  return (await contentOf(agent)).tools ?? [];
}

/** The schema of an agent's structured output, where it has one. */
export async function structuredOutput(agent: Agent): Promise<JsonSchema | undefined> {
  try {
    return await internalsOf(agent).spec.outputSchema?.();
  } catch {
    return undefined;
  }
}

/** The structured output in an answer, of which a snapshot has the text only. */
export async function outputIn(
  agent: Agent,
  answer: Message | undefined,
): Promise<Json | undefined> {
  return (await structuredOutput(agent)) ? findJson(textOf(answer)) : undefined;
}
