import { createContext, type ReactNode, useContext } from 'react';
import type { AgentInfo, RemoteAgent, SessionInfo } from '../../../src/client/index.ts';
import type { AgentStore } from '../../../src/react/index.ts';
import type { Place } from '../lib/place.ts';
import type { Titles } from '../lib/titles.ts';
import type { TraceSpan } from '../lib/traces.ts';
import type { Commands } from './commands.ts';

/** The shared state of the page about one agent. */
export interface Workbench {
  readonly info: AgentInfo;
  readonly agent: RemoteAgent;
  readonly store: AgentStore;
  readonly titles: Titles;
  readonly commands: Commands;
  readonly place: Place;
  /** The session as last loaded; `gone` when it was deleted. */
  readonly session: SessionInfo | 'gone' | undefined;
  /** The spans of the session; `undefined` where the server keeps none. */
  readonly spans: readonly TraceSpan[] | undefined;
}

const context = createContext<Workbench | undefined>(undefined);

export function WorkbenchProvider({
  value,
  children,
}: {
  readonly value: Workbench;
  readonly children: ReactNode;
}): ReactNode {
  return <context.Provider value={value}>{children}</context.Provider>;
}

/** The workbench around this component. */
export function useWorkbench(): Workbench {
  const workbench = useContext(context);
  if (!workbench) throw new Error('There is no agent here.');
  return workbench;
}
