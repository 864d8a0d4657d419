import type { Agent } from '../../agent/spec/agent.ts';
import type { ErrorListener } from '../../agent/spec/error-reports.ts';
import type { Action } from '../../core/action.ts';
import { WaymarkError } from '../../core/error.ts';
import type { Registry } from '../../core/registry.ts';
import type { ToolSource } from '../../generate/tool/tool-source.ts';
import type { Webhooks } from '../../webhook/webhooks.ts';
import { short } from './errors.ts';

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
  subscribeToErrors?(listener: ErrorListener): () => void;
}

/** Whether the sessions of an agent are in a store. */
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
    throw new WaymarkError('FAILED_PRECONDITION', message);
  }
}
