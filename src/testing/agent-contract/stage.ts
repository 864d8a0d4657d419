import { expect } from 'vitest';
import type { Agent } from '../../agent/contract/agent.ts';
import type { AgentConnection } from '../../api/types.ts';
import type { App } from '../../app.ts';
import { isJsonArray, isJsonObject, type Json, toJson } from '../../core/json/json.ts';
import type { Store } from '../../store/contract/store.ts';
import { type ScriptedModel, scriptedModel } from '../scripted-model.ts';
import { createContractApp } from './agents.ts';
import type { ContractCase } from './case.ts';

/** The agent API that the contract uses, in process or remote. Clients read files by their URL. */
export type ContractAgent = Omit<Agent, 'metadata' | 'description' | 'checkout'>;

/** How the contract reaches the agents of an app. */
export interface ContractLink {
  /** The agent of this name. */
  agent(name: string): ContractAgent;
  /** Closes the connection. */
  close(): Promise<void>;
}

/** The environment of a case: a new store, and access to the agents. */
export interface ContractHost {
  /** The store of the agents. */
  readonly store: Store;
  /** @default calls the app directly */
  readonly connect?: (app: App) => Promise<ContractLink>;
  /** Closes and reopens the store, as another process would. @default keeps using the same store */
  readonly reopen?: () => Promise<Store>;
  /** Called after the last app on the store has been closed. */
  readonly close?: () => Promise<void>;
}

/** A case while it runs: the process, the model, and the values that earlier steps have saved. */
export interface Stage {
  readonly model: ScriptedModel;
  readonly agent: ContractAgent;
  /** The option that names an owner. Empty for a client: its server knows the owner. */
  readonly owner: { readonly owner?: string };
  readonly connections: Map<string, AgentConnection>;
  /** Saves a value under a name. */
  keep(name: string | undefined, value: unknown): void;
  /** Replaces `$name.path` in a value with the saved value. */
  resolve<Value>(value: Value): Value;
  restart(): Promise<void>;
  close(): Promise<void>;
}

/** Sets up the environment of a case. */
export async function openStage(
  host: ContractHost,
  { agent, script }: ContractCase,
): Promise<Stage> {
  const model = scriptedModel(script ?? []);
  const kept = new Map<string, Json>();
  const connections = new Map<string, AgentConnection>();
  let { store } = host;
  const start = async (): Promise<{ readonly app: App; readonly link: ContractLink }> => {
    const app = createContractApp({ store, model });
    await app.ready();
    const direct = { agent: (name: string) => app.agent(name), close: async () => {} };
    return { app, link: (await host.connect?.(app)) ?? direct };
  };
  let { app, link } = await start();
  const stop = async (): Promise<void> => {
    for (const connection of connections.values()) connection.abort();
    connections.clear();
    await link.close();
    await app.close({ grace: 500 });
  };
  return {
    model,
    get agent() {
      return link.agent(agent);
    },
    owner: host.connect === undefined ? { owner: 'ada' } : {},
    connections,
    keep(name, value) {
      if (name !== undefined) kept.set(name, toJson(JSON.parse(JSON.stringify(value)), name));
    },
    // The replacement has the type of the placeholder.
    resolve: <Value>(value: Value): Value => resolved(value as Json, kept) as Value,
    async restart() {
      await stop();
      store = (await host.reopen?.()) ?? store;
      ({ app, link } = await start());
    },
    async close() {
      await stop();
      await host.close?.();
    },
  };
}

function resolved(value: Json | undefined, kept: ReadonlyMap<string, Json>): Json | undefined {
  if (typeof value === 'string' && value.startsWith('$')) return lookUp(value.slice(1), kept);
  if (isJsonArray(value)) return value.map((item) => resolved(item, kept) ?? null);
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).map(([key, item]) => [key, resolved(item, kept)]);
  return Object.fromEntries(entries);
}

function lookUp(path: string, kept: ReadonlyMap<string, Json>): Json {
  const [name = '', ...steps] = path.split('.');
  let value = kept.get(name);
  for (const step of steps) {
    value = isJsonArray(value)
      ? value[Number(step)]
      : isJsonObject(value)
        ? value[step]
        : undefined;
  }
  return value ?? expect.fail(`nothing has been kept as $${path}`);
}
