import { type ReactNode, useMemo, useState } from 'react';
import { EditButton } from '../edit/edit-button.tsx';
import { artifactSubject } from '../edit/edit-subject.ts';
import { artifactChanges, artifactName, artifactSize, artifactText } from '../lib/artifacts.ts';
import { download } from '../lib/download.ts';
import { bytes } from '../lib/format.ts';
import { CopyButton } from '../ui/copy-button.tsx';
import { Empty } from '../ui/empty.tsx';
import { FileName } from '../ui/file-name.tsx';
import { Icon } from '../ui/icon.tsx';
import { ArtifactPreview } from './artifact-preview.tsx';
import { LineDiff } from './line-diff-view.tsx';
import type { Subject } from './use-subject.ts';

type Mode = 'preview' | 'source' | 'changes';

/** The artifacts of a state, one of them shown. */
export function FilesTab({ subject: { state, before } }: { readonly subject: Subject }): ReactNode {
  const artifacts = state?.artifacts ?? [];
  const [chosen, setChosen] = useState<string>();
  const [mode, setMode] = useState<Mode>('preview');
  const names = artifacts.map(artifactName);
  const shown = Math.max(0, names.indexOf(chosen ?? ''));
  const artifact = artifacts[shown];
  const name = names[shown] ?? '';
  const change = useMemo(
    () =>
      artifactChanges(before?.artifacts ?? [], state?.artifacts ?? []).find(
        (each) => each.name === name,
      ),
    [before, state, name],
  );
  if (!artifact) {
    return (
      <Empty title="No files.">
        <p>The artifacts that the agent creates are listed here, as of each snapshot.</p>
      </Empty>
    );
  }
  const now: Mode = mode === 'changes' && !change ? 'preview' : mode;
  const [first] = artifact.parts;
  return (
    <div className="files">
      <ul className="file-names" aria-label="Files">
        {artifacts.map((each, at) => (
          <li key={names[at]}>
            <button
              type="button"
              aria-pressed={at === shown}
              title={names[at]}
              onClick={() => setChosen(names[at])}
            >
              <Icon name="file" size={14} />
              <FileName name={names[at] ?? ''} />
              <span className="quiet">{bytes(artifactSize(each))}</span>
            </button>
          </li>
        ))}
      </ul>
      <div className="file-bar">
        <span className="segments">
          {(['preview', 'source', 'changes'] as const).map((each) => (
            <button
              key={each}
              type="button"
              aria-pressed={each === now}
              disabled={each === 'changes' && !change}
              onClick={() => setMode(each)}
            >
              {each.charAt(0).toUpperCase() + each.slice(1)}
            </button>
          ))}
        </span>
        {artifactSubject(artifact) && (
          <EditButton what={name} subject={() => artifactSubject(artifact)} />
        )}
        <CopyButton text={artifactText(artifact)} label="Copy the file" />
        <button
          type="button"
          className="icon-button"
          aria-label={`Download ${name}`}
          title="Download"
          onClick={() =>
            download(
              name,
              first && 'media' in first
                ? { url: first.media.url }
                : { text: artifactText(artifact) },
            )
          }
        >
          <Icon name="download" />
        </button>
      </div>
      {now === 'changes' ? (
        <LineDiff
          before={change?.before ? artifactText(change.before) : ''}
          after={artifactText(artifact)}
          label={`Changes to ${name}`}
        />
      ) : (
        <ArtifactPreview key={name} artifact={artifact} name={name} isSource={now === 'source'} />
      )}
    </div>
  );
}
