import { type ReactNode, useEffect, useMemo, useState } from 'react';
import type { FileInfo } from '../../../src/client/index.ts';
import { languageOf } from '../lib/artifacts.ts';
import { download } from '../lib/download.ts';
import { bytes, plural } from '../lib/format.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { Icon } from '../ui/icon.tsx';
import { LongText } from '../ui/long-text.tsx';
import { toast } from '../ui/toasts.tsx';
import { type Folder, folderTree } from './folder-tree.ts';
import type { ListedFiles } from './use-files.ts';

/** The tree of a workspace as a snapshot has it, and one of its files. */
export function WorkspaceFiles({ listed }: { readonly listed: ListedFiles }): ReactNode {
  const { files, isCut, snapshotId } = listed;
  const [chosen, setChosen] = useState<string>();
  const tree = useMemo(() => folderTree(files), [files]);
  const file = files.find(({ path }) => path === chosen);
  return (
    <section className="workspace" aria-label="Workspace">
      <h3>
        Workspace{' '}
        <span className="quiet">
          {plural(files.length, 'file')}
          {isCut && ' and more'}
        </span>
      </h3>
      <div className="tree">
        <Entries folder={tree} chosen={chosen} onChoose={setChosen} depth={0} />
      </div>
      {file !== undefined && (
        <OpenedFile key={`${snapshotId} ${file.path}`} file={file} snapshotId={snapshotId} />
      )}
    </section>
  );
}

/** Folders above this many files are closed at first. */
const openBelow = 60;

function Entries({
  folder,
  chosen,
  onChoose,
  depth,
}: {
  readonly folder: Folder;
  readonly chosen: string | undefined;
  readonly onChoose: (path: string) => void;
  readonly depth: number;
}): ReactNode {
  return (
    <ul className="file-names">
      {folder.folders.map((inner) => (
        <li key={inner.name}>
          <FolderEntry folder={inner} chosen={chosen} onChoose={onChoose} depth={depth} />
        </li>
      ))}
      {folder.files.map(({ name, info }) => (
        <li key={name}>
          <button
            type="button"
            aria-pressed={info.path === chosen}
            title={info.path}
            onClick={() => onChoose(info.path)}
          >
            <Icon name="file" size={14} />
            <span className="file-name">{name}</span>
            {info.target !== undefined && <span className="target">→ {info.target}</span>}
            {info.executable === true && <span className="badge">executable</span>}
            {info.type === 'file' && <span className="quiet">{bytes(info.size)}</span>}
          </button>
        </li>
      ))}
    </ul>
  );
}

/** A folder, whose content is drawn once it is open. */
function FolderEntry({
  folder,
  depth,
  ...rest
}: {
  readonly folder: Folder;
  readonly chosen: string | undefined;
  readonly onChoose: (path: string) => void;
  readonly depth: number;
}): ReactNode {
  const [isOpen, setOpen] = useState(depth === 0 && folder.count <= openBelow);
  return (
    <details className="fold" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <Icon name="chevron" size={12} />
        <span className="file-name">{folder.name}</span>
        <span className="quiet">{plural(folder.count, 'file')}</span>
      </summary>
      {isOpen && <Entries folder={folder} depth={depth + 1} {...rest} />}
    </details>
  );
}

/** Larger files are only downloaded. */
const maxShown = 1_000_000;

type Content =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'none'; readonly why: string };

function OpenedFile({
  file,
  snapshotId,
}: {
  readonly file: FileInfo;
  readonly snapshotId: string;
}): ReactNode {
  const { agent } = useWorkbench();
  const [content, setContent] = useState<Content>();
  const { path, size, type, target = '' } = file;
  useEffect(() => {
    let isCurrent = true;
    const set = (read: Content): void => {
      if (isCurrent) setContent(read);
    };
    if (type === 'link') set({ kind: 'none', why: `A link to ${target}.` });
    else if (size > maxShown) set({ kind: 'none', why: `Too large to show: ${bytes(size)}.` });
    else {
      const read = async (): Promise<Content> => {
        const { stream } = await agent.openFile(snapshotId, path, { workspace: true });
        return toContent(await new Response(stream).arrayBuffer());
      };
      read().then(set, (error: unknown) => set({ kind: 'none', why: reasonOf(error) }));
    }
    return () => {
      isCurrent = false;
    };
  }, [agent, snapshotId, path, size, type, target]);
  const save = async (): Promise<void> => {
    try {
      const { stream } = await agent.openFile(snapshotId, path, { workspace: true });
      download(path, { blob: await new Response(stream).blob() });
    } catch (error) {
      toast({ text: `Could not download the file. ${reasonOf(error)}`, isFault: true });
    }
  };
  return (
    <div className="opened-file">
      <div className="file-bar">
        <strong className="path">{path}</strong>
        {type === 'file' && (
          <button
            type="button"
            className="icon-button"
            aria-label={`Download ${path}`}
            title="Download"
            onClick={() => void save()}
          >
            <Icon name="download" />
          </button>
        )}
      </div>
      {content === undefined && <p className="quiet loading">Loading…</p>}
      {content?.kind === 'none' && <p className="quiet">{content.why}</p>}
      {content?.kind === 'text' && (
        <LongText text={content.text} language={languageOf(path)} name={path} />
      )}
    </div>
  );
}

function toContent(content: ArrayBuffer): Content {
  if (new Uint8Array(content).includes(0)) return { kind: 'none', why: 'Not a text.' };
  try {
    return { kind: 'text', text: new TextDecoder('utf-8', { fatal: true }).decode(content) };
  } catch {
    return { kind: 'none', why: 'Not a text.' };
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
