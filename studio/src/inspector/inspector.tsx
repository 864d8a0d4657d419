import { type KeyboardEvent, type ReactNode, useDeferredValue, useState } from 'react';
import { Boundary } from '../ui/boundary.tsx';
import { DiffTab } from './diff-tab.tsx';
import { FilesTab } from './files-tab.tsx';
import { MemoryTab } from './memory-tab.tsx';
import { StateTab } from './state-tab.tsx';
import { TraceTab } from './trace-tab.tsx';
import { useSubject } from './use-subject.ts';

const tabs = ['State', 'Diff', 'Trace', 'Files', 'Memory'] as const;
type Tab = (typeof tabs)[number];

/** The state of the selected snapshot; it opens on what the turn changed. */
export function Inspector(): ReactNode {
  const [tab, setTab] = useState<Tab>('Diff');
  // A turn that streams changes it many times a second; the conversation comes first.
  const subject = useDeferredValue(useSubject());
  const files = subject.state?.artifacts?.length ?? 0;
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    const next = tabs.at((tabs.indexOf(tab) + step) % tabs.length);
    if (step === 0 || !next) return;
    setTab(next);
    document.getElementById(`tab-${next}`)?.focus();
  };
  return (
    <>
      <header className="panel-header">
        <h2 className="visually-hidden">Inspector</h2>
        <div className="tabs" role="tablist" aria-label="Inspector" onKeyDown={onKeyDown}>
          {tabs.map((name) => (
            <button
              key={name}
              id={`tab-${name}`}
              type="button"
              role="tab"
              aria-selected={name === tab}
              aria-controls="inspector-tab"
              tabIndex={name === tab ? 0 : -1}
              onClick={() => setTab(name)}
            >
              {name}
              {name === 'Files' && files > 0 && <span className="count">{files}</span>}
            </button>
          ))}
        </div>
      </header>
      <div
        id="inspector-tab"
        className="tab-body"
        role="tabpanel"
        aria-labelledby={`tab-${tab}`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
        tabIndex={0}
      >
        <Boundary key={tab} what={tab.toLowerCase()}>
          {tab === 'State' && <StateTab subject={subject} />}
          {tab === 'Diff' && <DiffTab subject={subject} />}
          {tab === 'Trace' && <TraceTab subject={subject} />}
          {tab === 'Files' && <FilesTab subject={subject} />}
          {tab === 'Memory' && <MemoryTab snapshotId={subject.snapshot?.snapshotId} />}
        </Boundary>
      </div>
    </>
  );
}
