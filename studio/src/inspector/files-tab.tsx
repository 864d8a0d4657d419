import { type ReactNode, useMemo, useState } from 'react';
import type { Artifact } from '../../../src/client/index.ts';
import { EditButton } from '../edit/edit-button.tsx';
import { artifactSubject } from '../edit/edit-subject.ts';
import { useFiles } from '../files/use-files.ts';
import { WorkspaceFiles } from '../files/workspace-files.tsx';
import {
  artifactChanges,
  artifactName,
  artifactSize,
  artifactText,
  storedSize,
} from '../lib/artifacts.ts';
import { download, downloadStored } from '../lib/download.ts';
import { bytes } from '../lib/format.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { Empty } from '../ui/empty.tsx';
import { FileName } from '../ui/file-name.tsx';
import { Icon } from '../ui/icon.tsx';
import { toast } from '../ui/toasts.tsx';
import { ArtifactPreview } from './artifact-preview.tsx';
import { LineDiff } from './line-diff-view.tsx';
import type { Subject } from './use-subject.ts';

type Mode = 'preview' | 'source' | 'changes';

/** The artifacts of a state, one of them shown, and the files of the workspace. */
export function FilesTab({ subject }: { readonly subject: Subject }): ReactNode {
  const { agent } = useWorkbench();
  const { snapshot, state } = subject;
  const listed = useFiles(agent, snapshot?.snapshotId);
  const hasArtifacts = (state?.artifacts ?? []).length > 0;
  const hasFiles = listed !== undefined && listed.files.length > 0;
  if (!hasArtifacts && !hasFiles) {
    return (
      <Empty title="No files.">
        <p>
          The artifacts that the agent creates, and the files of its workspace, are listed here, as
          of each snapshot.
        </p>
      </Empty>
    );
  }
  return (
    <>
      {hasArtifacts && <Artifacts subject={subject} />}
      {hasFiles && <WorkspaceFiles listed={listed} />}
    </>
  );
}

function Artifacts({
  subject: { snapshot, state, before },
}: {
  readonly subject: Subject;
}): ReactNode {
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
  if (!artifact) return null;
  const now: Mode = mode === 'changes' && !change ? 'preview' : mode;
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
        <DownloadButton artifact={artifact} name={name} snapshotId={snapshot?.snapshotId} />
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

/** Downloads a file, from the server if the store keeps it apart from the state. */
function DownloadButton({
  artifact,
  name,
  snapshotId,
}: {
  readonly artifact: Artifact;
  readonly name: string;
  readonly snapshotId: string | undefined;
}): ReactNode {
  const { info } = useWorkbench();
  const [first] = artifact.parts;
  const isStored = first !== undefined && storedSize(first) !== undefined;
  const fetchStored = async (): Promise<void> => {
    if (snapshotId === undefined) return;
    try {
      await downloadStored(info.name, snapshotId, name);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      toast({ text: `Could not download the file. ${reason}`, isFault: true });
    }
  };
  const isUnsaved = isStored && snapshotId === undefined;
  return (
    <button
      type="button"
      className="icon-button"
      aria-label={`Download ${name}`}
      title={isUnsaved ? 'The file can be downloaded when the turn has ended.' : 'Download'}
      disabled={isUnsaved}
      onClick={() => {
        if (isStored) void fetchStored();
        else if (first && 'media' in first) download(name, { url: first.media.url });
        else download(name, { text: artifactText(artifact) });
      }}
    >
      <Icon name="download" />
    </button>
  );
}
