import { type ReactNode, useEffect } from 'react';
import type { AgentInfo } from '../../../src/client/index.ts';
import { InboxView } from '../inbox/inbox-view.tsx';
import { type Place, placeHash, usePlace } from '../lib/place.ts';
import { lookNow, pulse } from '../lib/pulse.ts';
import { serverUrl } from '../lib/server.ts';
import { useTheme } from '../lib/theme.ts';
import { useSource } from '../lib/use-source.ts';
import { MemoryView } from '../memory/memory-view.tsx';
import { ReportView } from '../replay/report-view.tsx';
import { RunsView } from '../runs/runs-view.tsx';
import { ToolsView } from '../tools/tools-view.tsx';
import { TracesView } from '../traces/traces-view.tsx';
import { Boundary } from '../ui/boundary.tsx';
import { Empty } from '../ui/empty.tsx';
import { Toasts } from '../ui/toasts.tsx';
import { UsageView } from '../usage/usage-view.tsx';
import { AgentPage } from './agent-page.tsx';
import { DialogHost } from './dialog-host.tsx';
import { PageKeys } from './page-keys.tsx';
import { TopBar } from './top-bar.tsx';
import { useAgents } from './use-agents.ts';

const none: readonly AgentInfo[] = [];

/** The studio. */
export function App(): ReactNode {
  const place = usePlace();
  const agents = useAgents();
  const theme = useTheme();
  const { online } = useSource(pulse);
  const { owner } = place;
  // biome-ignore lint/correctness/useExhaustiveDependencies: another owner has other runs
  useEffect(lookNow, [owner]);
  const info = agents?.find(({ name }) => name === place.agent) ?? agents?.[0];
  return (
    <Boundary what="studio">
      <button
        type="button"
        className="skip"
        onClick={() => document.querySelector<HTMLElement>('[data-composer]')?.focus()}
      >
        Skip to the message field
      </button>
      {info && agents && place.view === 'chat' && isKnown(place, agents) ? (
        <AgentPage
          key={`${info.name} ${place.owner ?? ''}`}
          info={info}
          agents={agents}
          place={place}
          theme={theme}
        />
      ) : (
        <div className="shell plain" key={place.owner ?? ''}>
          <TopBar agents={agents ?? []} current={undefined} theme={theme} />
          {place.view === 'replay' ? (
            <ReportView />
          ) : place.view === 'runs' && agents ? (
            <RunsView
              agents={agents.filter(({ metadata }) => metadata.claims).map(({ name }) => name)}
            />
          ) : place.view === 'inbox' && agents ? (
            <InboxView agents={agents} />
          ) : place.view === 'memory' && agents ? (
            <MemoryView agents={agents} />
          ) : place.view === 'tools' && agents ? (
            <ToolsView agents={agents} />
          ) : place.view === 'traces' && agents ? (
            <TracesView agents={agents.map(({ name }) => name)} />
          ) : place.view === 'usage' && agents ? (
            <UsageView agents={agents} />
          ) : (
            <NoAgent
              agents={agents?.map(({ name }) => name)}
              asked={place.agent}
              isAway={online === false}
            />
          )}
        </div>
      )}
      <PageKeys changeTheme={theme[1]} />
      <DialogHost agents={agents ?? none} />
      <Toasts />
    </Boundary>
  );
}

function isKnown({ agent }: Place, agents: readonly { readonly name: string }[]): boolean {
  return agent === undefined || agents.some(({ name }) => name === agent);
}

/** Shown when there is no agent: why, and what to do. */
function NoAgent({
  agents,
  asked,
  isAway,
}: {
  readonly agents: readonly string[] | undefined;
  readonly asked: string | undefined;
  readonly isAway: boolean;
}): ReactNode {
  if (isAway && !agents) {
    return (
      <main className="conversation" aria-label="Studio">
        <Empty isPage title="The server does not respond.">
          <p>
            It was expected at <code>{serverUrl}</code>. Start it again, with <code>npm start</code>{' '}
            or <code>waymark dev</code>; this page reconnects by itself.
          </p>
        </Empty>
      </main>
    );
  }
  if (!agents) {
    return (
      <main className="conversation" aria-label="Studio">
        <p className="quiet loading">Looking for agents…</p>
      </main>
    );
  }
  return (
    <main className="conversation" aria-label="Studio">
      {asked === undefined ? (
        <Empty isPage title="There are no agents yet.">
          <p>Define one, and it appears here:</p>
          <pre className="snippet-code">{`app.defineAgent({ name: 'chat', system: 'You are a helpful assistant.' });`}</pre>
        </Empty>
      ) : (
        <Empty isPage title={`There is no agent “${asked}” here.`}>
          <p>
            <a className="button primary" href={placeHash({ view: 'chat' })}>
              Go to {agents[0] ?? 'the start'}
            </a>
          </p>
        </Empty>
      )}
    </main>
  );
}
