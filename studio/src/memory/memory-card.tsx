import { type ReactNode, useState } from 'react';
import type { MemoryEntry, MemoryHit, MemoryVersionInfo } from '../../../src/client/index.ts';
import type { Json } from '../../../src/core/json/json.ts';
import { shortId } from '../lib/format.ts';
import { placeHash } from '../lib/place.ts';
import { agentOf } from '../lib/server.ts';
import { Icon } from '../ui/icon.tsx';
import { Time } from '../ui/time.tsx';

/** An entry: its content, its source, and what can be done with it. */
export function MemoryCard({
  agent,
  entry,
  attempt,
}: {
  readonly agent: string;
  readonly entry: MemoryEntry | MemoryHit;
  readonly attempt: (work: () => Promise<unknown>, done: string) => Promise<boolean>;
}): ReactNode {
  const { id, value, createdAt, source } = entry;
  const { memory } = agentOf(agent);
  const [draft, setDraft] = useState<string>();
  const [isSure, setSure] = useState(false);
  const [versions, setVersions] = useState<readonly MemoryVersionInfo[]>();
  const save = async (): Promise<void> => {
    const isSaved = await attempt(
      async () => memory.update(id, JSON.parse(draft ?? '')),
      'Saved as a new version.',
    );
    if (isSaved) setDraft(undefined);
  };
  return (
    <li className="run-card memory-card">
      {draft === undefined ? (
        <MemoryValue value={value as Json} />
      ) : (
        <textarea
          aria-label="The entry as JSON"
          className="mono"
          rows={Math.min(12, draft.split('\n').length + 1)}
          value={draft}
          onChange={({ target }) => setDraft(target.value)}
        />
      )}
      <div className="run-head">
        <MemorySource source={source} />
        <Time iso={createdAt} form="clock" />
        {'score' in entry && <span className="quiet">score {entry.score.toFixed(2)}</span>}
        <span className="run-buttons">
          {draft !== undefined ? (
            <>
              <button type="button" className="button" onClick={() => setDraft(undefined)}>
                Cancel
              </button>
              <button type="button" className="button primary" onClick={() => void save()}>
                Save
              </button>
            </>
          ) : isSure ? (
            <>
              <button type="button" className="button" onClick={() => setSure(false)}>
                Keep
              </button>
              <button
                type="button"
                className="button danger"
                onClick={() =>
                  void attempt(() => memory.forget(id), 'Deleted with all its versions.')
                }
              >
                Delete permanently
              </button>
            </>
          ) : (
            <>
              <button
                type="button"
                className="button"
                aria-expanded={versions !== undefined}
                onClick={() =>
                  versions === undefined
                    ? void memory.history(id).then(setVersions, () => {})
                    : setVersions(undefined)
                }
              >
                Versions
              </button>
              <button
                type="button"
                className="button"
                onClick={() => setDraft(JSON.stringify(value, null, 2))}
              >
                <Icon name="edit" size={14} /> Edit
              </button>
              <button type="button" className="button" onClick={() => setSure(true)}>
                <Icon name="trash" size={14} /> Forget
              </button>
            </>
          )}
        </span>
      </div>
      {versions && (
        <ol className="memory-versions" aria-label="Versions">
          {versions.map((version) => (
            <li key={version.version}>
              <MemoryValue value={version.value as Json | undefined} />
              <span className="quiet">
                <MemorySource source={version.source} /> ·{' '}
                <Time iso={version.createdAt} form="clock" />
              </span>
            </li>
          ))}
        </ol>
      )}
    </li>
  );
}

/** The content of an entry: a single text as it is, anything else as JSON. */
export function MemoryValue({ value }: { readonly value: Json | undefined }): ReactNode {
  if (value === undefined) return <span className="quiet">Forgotten</span>;
  const texts = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  const [first, ...rest] = texts;
  if (first === undefined || typeof first[1] !== 'string') {
    return <code className="memory-value">{JSON.stringify(value)}</code>;
  }
  return (
    <p className="memory-value" dir="auto">
      {first[1]}{' '}
      {rest.map(([name, each]) => (
        <span key={name} className="chip">
          {name}: {typeof each === 'string' ? each : JSON.stringify(each)}
        </span>
      ))}
    </p>
  );
}

/** The turn that a version came from, as a link to it. */
function MemorySource({
  source,
}: {
  readonly source: MemoryEntry['source'] | undefined;
}): ReactNode {
  if (source === undefined) return <span className="quiet">Added by code or a person</span>;
  const { agent, sessionId: session, snapshotId: snapshot } = source;
  return (
    <a href={placeHash({ view: 'chat', agent, session, snapshot })}>
      {agent} · session {shortId(session)}
    </a>
  );
}
