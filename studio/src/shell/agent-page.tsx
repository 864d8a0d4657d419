import { type CSSProperties, type ReactNode, useEffect, useMemo, useRef } from 'react';
import type { AgentInfo } from '../../../src/client/index.ts';
import { useAgentStore, useAgentValue } from '../../../src/react/index.ts';
import { Conversation } from '../conversation/conversation.tsx';
import { Inspector } from '../inspector/inspector.tsx';
import { pageSize } from '../lib/message-pages.ts';
import type { Place } from '../lib/place.ts';
import { pulse } from '../lib/pulse.ts';
import { agentOf } from '../lib/server.ts';
import type { Theme } from '../lib/theme.ts';
import { createTitles } from '../lib/titles.ts';
import { useTraces } from '../lib/traces.ts';
import { useSource } from '../lib/use-source.ts';
import { RunList } from '../runs/run-list.tsx';
import { SessionList } from '../sessions/session-list.tsx';
import { sessionTitle } from '../sessions/session-title.ts';
import { Timeline } from '../timeline/timeline.tsx';
import { Boundary } from '../ui/boundary.tsx';
import { createCommands } from './commands.ts';
import { KeyCommands } from './key-commands.tsx';
import { OfflineBar } from './offline-bar.tsx';
import { PanelFrame } from './panel-frame.tsx';
import { type Panels, panels } from './panels.ts';
import { SidebarFoot, TopBar } from './top-bar.tsx';
import { useAgentInfo } from './use-agents.ts';
import { useSession } from './use-session.ts';
import { type Workbench, WorkbenchProvider } from './workbench.tsx';

/** How many snapshots of a session are loaded at a time. */
const timelinePortion = 400;

/** Everything about one agent: its sessions, and in one of them the timeline, the conversation and the inspector. */
export function AgentPage({
  info: listed,
  agents,
  place,
  theme,
}: {
  readonly info: AgentInfo;
  readonly agents: readonly AgentInfo[];
  readonly place: Place;
  readonly theme: readonly [Theme, () => void];
}): ReactNode {
  const info = useAgentInfo(listed);
  const workbench = useOpenWorkbench(info, place);
  const { sheet, hidden, widths } = useSource(panels);
  usePageTitle(workbench);
  return (
    <WorkbenchProvider value={workbench}>
      <KeyCommands />
      <div className="shell" data-hidden={hidden.join(' ')} style={ownWidths(widths)}>
        <TopBar agents={agents} current={info} theme={theme} />
        <OfflineBar />
        <PanelFrame panel="sessions" label="Sessions and runs" sheet={sheet}>
          <SessionList />
          <RunList sessionId={place.session} />
          <SidebarFoot theme={theme} />
        </PanelFrame>
        <PanelFrame panel="timeline" label="Timeline" sheet={sheet}>
          <Boundary what="timeline">
            <Timeline />
          </Boundary>
        </PanelFrame>
        <Boundary what="conversation">
          <Conversation />
        </Boundary>
        <PanelFrame panel="inspector" label="Inspector" sheet={sheet}>
          <Inspector />
        </PanelFrame>
      </div>
    </WorkbenchProvider>
  );
}

function useOpenWorkbench(info: AgentInfo, place: Place): Workbench {
  const agent = agentOf(info.name);
  const first = useRef(place.session);
  const store = useAgentStore({
    agent,
    timeline: timelinePortion,
    messages: pageSize,
    ...(first.current !== undefined && { sessionId: first.current }),
  });
  const placeNow = useRef(place);
  placeNow.current = place;
  const modelNow = useRef(info.model);
  modelNow.current = info.model;
  const titles = useMemo(() => createTitles(agent), [agent]);
  const commands = useMemo(
    () =>
      createCommands(
        store,
        agent,
        () => placeNow.current,
        () => modelNow.current,
      ),
    [store, agent],
  );
  const session = useSession(store, agent, place, info.metadata.timeline);
  const { beat } = useSource(pulse);
  const sessionId = useAgentValue(store, (view) => view.sessionId);
  const phase = useAgentValue(store, (view) => view.phase);
  const turns = useAgentValue(store, (view) => view.timeline.length);
  const spans = useTraces(sessionId, phase === 'ready' ? `${turns} ready` : beat);
  return useMemo(
    () => ({ info, agent, store, titles, commands, place, session, spans }),
    [info, agent, store, titles, commands, place, session, spans],
  );
}

// Read by the grid; a column without a stored width takes the one of the style sheet.
function ownWidths(widths: Panels['widths']): CSSProperties {
  return Object.fromEntries(
    Object.entries(widths).map(([panel, width]) => [`--own-${panel}`, `${width}px`]),
  );
}

function usePageTitle({ info, session }: Workbench): void {
  const title = session === undefined || session === 'gone' ? info.name : sessionTitle(session);
  useEffect(() => {
    document.title = `${title} · Waymark`;
  }, [title]);
}
