import { useEffect, useMemo, useRef, useSyncExternalStore } from 'react';
import type { AgentApi } from '../api/agent-api.ts';
import type { AgentTypes } from '../api/types.ts';
import { type ClientOptions, client, type Typed, type TypesOf } from '../client/index.ts';
import type { AgentActions, AgentStore, AgentStoreOptions } from './agent-store.ts';
import { createAgentStore } from './create-agent-store.ts';
import type { AgentView } from './view.ts';

type StoreOptions<Types extends AgentTypes> = Omit<AgentStoreOptions<Types>, 'agent'>;

/** An agent that is at hand; a new one makes a new conversation, so keep it outside of the component. */
type UseAgentOptions<Types extends AgentTypes> = StoreOptions<Types> & {
  readonly agent: AgentApi<Types>;
};

/** An agent by its server and name. */
type UseRemoteAgentOptions<Types extends AgentTypes> = StoreOptions<Types> &
  ClientOptions & { readonly agent: string };

/** The view, what can be done, and the store of both. */
export interface UseAgent<Types extends AgentTypes> extends AgentView<Types>, AgentActions<Types> {
  /** The store under the hook, for `useAgentValue`. */
  readonly store: AgentStore<Types>;
}

/**
 * A conversation with an agent: `useAgent({ agent })`, or `useAgent<typeof chat>({ url, agent: 'chat' })`. The component
 * renders again whenever anything in the view changes; if that is too often, use {@link useAgentStore} and
 * {@link useAgentValue}.
 *
 * @example
 * const { messages, send, phase } = useAgent<typeof chat>({ url: '/agents', agent: 'chat' });
 */
export function useAgent<Types extends AgentTypes>(
  options: UseAgentOptions<Types>,
): UseAgent<Types>;
export function useAgent<A extends Typed>(
  options: UseRemoteAgentOptions<TypesOf<A>>,
): UseAgent<TypesOf<A>>;
export function useAgent<Types extends AgentTypes>(
  options: UseAgentOptions<Types> | UseRemoteAgentOptions<Types>,
): UseAgent<Types> {
  // Both kinds of options are fine for it: only its overloads are narrower.
  const store = useAgentStore(options as UseAgentOptions<Types>);
  const view = useSyncExternalStore(store.subscribe, store.getView, () => store.initialView);
  return useMemo(() => ({ ...view, ...store.actions, store }), [view, store]);
}

/**
 * The store of a conversation. Changes of the view do not render the component that holds it again.
 *
 * @example
 * const store = useAgentStore<typeof chat>({ url: '/agents', agent: 'chat' });
 */
export function useAgentStore<Types extends AgentTypes>(
  options: UseAgentOptions<Types>,
): AgentStore<Types>;
export function useAgentStore<A extends Typed>(
  options: UseRemoteAgentOptions<TypesOf<A>>,
): AgentStore<TypesOf<A>>;
export function useAgentStore<Types extends AgentTypes>(
  options: UseAgentOptions<Types> | UseRemoteAgentOptions<Types>,
): AgentStore<Types> {
  const { agent, sessionId } = options;
  const url = 'url' in options ? String(options.url) : '';
  // Options are usually written in place, so only what names the agent makes a new store.
  const key = typeof agent === 'string' ? `${agent} ${url}` : agent;
  const kept = useRef<{ readonly key: unknown; readonly store: AgentStore<Types> }>(undefined);
  if (kept.current?.key !== key) {
    const api = isRemote(options) ? remote(options) : options.agent;
    kept.current = { key, store: createAgentStore({ ...options, agent: api }) };
  }
  const { store } = kept.current;
  useEffect(() => store.open(), [store]);
  useEffect(() => {
    // A session that the conversation itself began is not one that was asked for.
    if (sessionId !== undefined && sessionId !== store.getView().sessionId) {
      void store.actions.load(sessionId);
    }
  }, [store, sessionId]);
  return store;
}

/**
 * A part of the view. The component renders again only when that part changes.
 *
 * @example
 * const phase = useAgentValue(store, (view) => view.phase);
 */
export function useAgentValue<Types extends AgentTypes, Value>(
  store: AgentStore<Types>,
  select: (view: AgentView<Types>) => Value,
): Value {
  const getValue = useMemo(() => oncePerView(store, select), [store, select]);
  return useSyncExternalStore(store.subscribe, getValue, () => select(store.initialView));
}

// A selection that makes a new object each time must not look like a change of the same view.
function oncePerView<Types extends AgentTypes, Value>(
  store: AgentStore<Types>,
  select: (view: AgentView<Types>) => Value,
): () => Value {
  let last: { readonly view: AgentView<Types>; readonly value: Value } | undefined;
  return () => {
    const view = store.getView();
    if (last?.view !== view) last = { view, value: select(view) };
    return last.value;
  };
}

function isRemote<Types extends AgentTypes>(
  options: UseAgentOptions<Types> | UseRemoteAgentOptions<Types>,
): options is UseRemoteAgentOptions<Types> {
  return typeof options.agent === 'string';
}

function remote<Types extends AgentTypes>({
  sessionId: _sessionId,
  initial: _initial,
  state: _state,
  timeline: _timeline,
  messages: _messages,
  throttle: _throttle,
  ...options
}: UseRemoteAgentOptions<Types>): AgentApi<Types> {
  // The types are those the caller named; a type parameter does not reduce here.
  return client<Typed<Types>>(options) as AgentApi<Types>;
}
