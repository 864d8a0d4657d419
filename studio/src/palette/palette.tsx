import { CommandGroup, CommandInput, CommandItem, CommandList, CommandRoot } from 'cmdk';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import type { AgentInfo } from '../../../src/client/index.ts';
import { keyName } from '../lib/keys.ts';
import { goTo, type Place } from '../lib/place.ts';
import { useSource } from '../lib/use-source.ts';
import { sessionTitle } from '../sessions/session-title.ts';
import { type PageCommand, sessionCommands } from '../shell/command-list.ts';
import { Icon, type IconName } from '../ui/icon.tsx';
import { Time } from '../ui/time.tsx';
import { useModal } from '../ui/use-modal.ts';
import { rank } from './rank.ts';
import { useFoundSessions } from './use-found-sessions.ts';
import { useLabels } from './use-labels.ts';

/** At most this many of each group besides sessions. */
const maxInGroup = 30;

/** Agents, sessions, labelled snapshots and commands by their names. */
export function Palette({
  agents,
  commands,
  onClose,
}: {
  readonly agents: readonly AgentInfo[];
  readonly commands: readonly PageCommand[];
  readonly onClose: () => void;
}): ReactNode {
  const ref = useModal();
  const field = useRef<HTMLInputElement>(null);
  // The dialog would focus the frame around the field.
  useEffect(() => field.current?.focus(), []);
  const [text, setText] = useState('');
  const query = text.trim();
  const sessions = useFoundSessions(agents, query);
  const best = <Item,>(items: readonly Item[], textOf: (item: Item) => string): readonly Item[] =>
    rank(items, query, textOf).slice(0, maxInGroup);
  const labels = best(useLabels(agents), ({ label }) => label);
  const foundAgents = best(agents, ({ name }) => name);
  const usable = [...useSource(sessionCommands), ...commands].filter(
    ({ needs }) => needs === undefined,
  );
  const foundCommands = best(usable, ({ name }) => name);
  const isEmpty = [foundCommands, foundAgents, sessions, labels].every(
    ({ length }) => length === 0,
  );
  const go = (place: Place): void => {
    onClose();
    goTo(place);
  };
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the browser itself closes it on Escape
    <dialog
      ref={ref}
      className="dialog palette"
      aria-label="Command palette"
      onClose={onClose}
      onClick={(event) => event.target === ref.current && onClose()}
    >
      <CommandRoot label="Command palette" shouldFilter={false} vimBindings={false} loop>
        <CommandInput
          ref={field}
          value={text}
          onValueChange={setText}
          placeholder="Search, or run a command"
        />
        <CommandList label="Found">
          {/* An option, because a list without one is none to a screen reader. */}
          {isEmpty && (
            <CommandItem value="nothing" disabled>
              Nothing found.
            </CommandItem>
          )}
          <Group heading="Commands">
            {foundCommands.map(({ name, key, run }) => (
              <Row
                key={name}
                id={`command ${name}`}
                icon="chevron"
                name={name}
                onSelect={() => {
                  onClose();
                  run();
                }}
              >
                {key !== undefined && <kbd>{keyName(key)}</kbd>}
              </Row>
            ))}
          </Group>
          <Group heading="Agents">
            {foundAgents.map(({ name, description }) => (
              <Row
                key={name}
                id={`agent ${name}`}
                icon="tool"
                name={name}
                onSelect={() => go({ view: 'chat', agent: name })}
              >
                {description}
              </Row>
            ))}
          </Group>
          <Group heading="Sessions">
            {sessions.map((session) => (
              <Row
                key={`${session.agent} ${session.sessionId}`}
                id={`session ${session.agent} ${session.sessionId}`}
                icon="sessions"
                name={sessionTitle(session, sessions)}
                onSelect={() =>
                  go({ view: 'chat', agent: session.agent, session: session.sessionId })
                }
              >
                {session.agent} · <Time iso={session.updatedAt} />
              </Row>
            ))}
          </Group>
          <Group heading="Labels">
            {labels.map(({ label, session, snapshot: { snapshotId, turnIndex } }) => (
              <Row
                key={snapshotId}
                id={`snapshot ${snapshotId}`}
                icon="flag"
                name={label}
                onSelect={() =>
                  go({
                    view: 'chat',
                    agent: session.agent,
                    session: session.sessionId,
                    snapshot: snapshotId,
                  })
                }
              >
                {sessionTitle(session)} · turn {turnIndex + 1}
              </Row>
            ))}
          </Group>
        </CommandList>
      </CommandRoot>
    </dialog>
  );
}

/** A group under its heading; nothing where it is empty. */
function Group({
  heading,
  children,
}: {
  readonly heading: string;
  readonly children: readonly ReactNode[];
}): ReactNode {
  return children.length > 0 && <CommandGroup heading={heading}>{children}</CommandGroup>;
}

function Row({
  id,
  icon,
  name,
  onSelect,
  children,
}: {
  /** Tells the rows of all groups apart. */
  readonly id: string;
  readonly icon: IconName;
  readonly name: string;
  readonly onSelect: () => void;
  readonly children?: ReactNode;
}): ReactNode {
  return (
    <CommandItem value={id} onSelect={onSelect}>
      <Icon name={icon} size={14} />
      <span className="palette-name" dir="auto">
        {name}
      </span>
      <span className="palette-about">{children}</span>
    </CommandItem>
  );
}
