import type { ReactNode } from 'react';
import type { AgentInfo } from '../../../src/client/index.ts';
import { useInbox } from '../inbox/use-inbox.ts';
import { keyNames } from '../lib/keys.ts';
import { placeHash, usePlace } from '../lib/place.ts';
import { pulse } from '../lib/pulse.ts';
import type { Theme } from '../lib/theme.ts';
import { useSource } from '../lib/use-source.ts';
import { openPalette } from '../palette/open-palette.ts';
import { Icon, type IconName } from '../ui/icon.tsx';
import { AgentMenu } from './agent-menu.tsx';
import { openDialog } from './dialogs.ts';
import { type Page, pages } from './pages.ts';
import { type Panel, togglePanel } from './panels.ts';

type ThemeChoice = readonly [Theme, () => void];

/** Which agent, on what, and whether the server is there. */
export function TopBar({
  agents,
  current,
  theme,
}: {
  readonly agents: readonly AgentInfo[];
  readonly current: AgentInfo | undefined;
  readonly theme: ThemeChoice;
}): ReactNode {
  const { runs } = useSource(pulse);
  const { view } = usePlace();
  const { items: waiting = [], isMore = false } = useInbox() ?? {};
  const counts: Partial<Record<Page['view'], string>> = {
    ...(waiting.length > 0 && { inbox: `${waiting.length}${isMore ? '+' : ''}` }),
    ...(runs.length > 0 && { runs: String(runs.length) }),
  };
  return (
    <header className="top-bar">
      {current && <PanelButton panel="sessions" icon="menu" label="Sessions" />}
      <a className="brand" href={placeHash({ view: 'chat' })} aria-label="Waymark">
        <svg width="18" height="18" viewBox="0 0 18 18" aria-hidden="true">
          <path d="M5.5 2v14M5.5 10c0-4 7-2 7-6" />
          <circle cx="5.5" cy="14.5" r="2" />
          <circle className="open" cx="12.5" cy="3.5" r="2" />
        </svg>
        <span>Waymark</span>
      </a>
      <AgentMenu agents={agents} current={current} />
      <span className="top-space" />
      {current && <Facts info={current} />}
      <Live />
      {pages.map((page) => (
        <PageLink
          key={page.view}
          page={page}
          isCurrent={view === page.view}
          count={counts[page.view]}
        />
      ))}
      <button
        type="button"
        className="icon-button"
        onClick={() => openPalette(theme[1])}
        aria-label="Command palette"
        title={`Command palette (${keyNames.modK})`}
      >
        <Icon name="search" />
      </button>
      <span className="top-tools">
        <ThemeButton theme={theme} />
        <HelpButton />
      </span>
      {current && <PanelButton panel="timeline" icon="timeline" label="Timeline" />}
      {current && <PanelButton panel="inspector" icon="inspector" label="Inspector" />}
    </header>
  );
}

function PageLink({
  page: { view, name, icon },
  isCurrent,
  count,
}: {
  readonly page: Page;
  readonly isCurrent: boolean;
  readonly count: string | undefined;
}): ReactNode {
  return (
    <a
      className="runs-link"
      data-view={view}
      href={placeHash({ view })}
      aria-current={isCurrent ? 'page' : undefined}
    >
      <Icon name={icon} />
      <span>{name}</span>
      {count !== undefined && <span className="count">{count}</span>}
    </a>
  );
}

/** On narrow screens the tools of the top bar stand below the sessions. */
export function SidebarFoot({ theme }: { readonly theme: ThemeChoice }): ReactNode {
  return (
    <footer className="sidebar-foot">
      <ThemeButton theme={theme} />
      <HelpButton />
    </footer>
  );
}

function Facts({ info: { model, metadata } }: { readonly info: AgentInfo }): ReactNode {
  const store =
    metadata.store ?? (metadata.stateManagement === 'client' ? 'held by this page' : 'plain store');
  return (
    <span className="top-facts">
      {model !== undefined && (
        <span>
          <span className="fact-name">Model</span> {model}
        </span>
      )}
      <span>
        <span className="fact-name">Store</span> {store}
      </span>
    </span>
  );
}

function Live(): ReactNode {
  const { online } = useSource(pulse);
  const words = online === undefined ? 'connecting' : online ? 'live' : 'offline';
  return (
    <span className="live" data-state={words} role="status">
      <svg width="10" height="10" viewBox="-5 -5 10 10" aria-hidden="true">
        {online === false ? <path d="M-3-3l6 6M3-3l-6 6" /> : <circle r="3.5" />}
      </svg>
      {words}
    </span>
  );
}

const themeIcons: Readonly<Record<Theme, IconName>> = {
  system: 'auto',
  light: 'sun',
  dark: 'moon',
};

function ThemeButton({ theme: [theme, next] }: { readonly theme: ThemeChoice }): ReactNode {
  const label = theme === 'system' ? 'Theme: as the system' : `Theme: ${theme}`;
  return (
    <button type="button" className="icon-button" onClick={next} aria-label={label} title={label}>
      <Icon name={themeIcons[theme]} />
    </button>
  );
}

function HelpButton(): ReactNode {
  return (
    <button
      type="button"
      className="icon-button"
      onClick={() => openDialog.set({ type: 'help' })}
      aria-label="Keyboard shortcuts"
      title="Keyboard shortcuts (?)"
    >
      <Icon name="help" />
    </button>
  );
}

function PanelButton({
  panel,
  icon,
  label,
}: {
  readonly panel: Panel;
  readonly icon: IconName;
  readonly label: string;
}): ReactNode {
  return (
    <button
      type="button"
      className="icon-button panel-button"
      data-for={panel}
      onClick={() => togglePanel(panel)}
      aria-label={`Show or hide: ${label}`}
      title={label}
    >
      <Icon name={icon} />
      <span className="panel-name">{label}</span>
    </button>
  );
}
