import { type ReactNode, useState } from 'react';
import type { FileDiff } from '../../../src/client/index.ts';
import { LineTable, type Shown } from '../inspector/line-diff-view.tsx';
import { plural } from '../lib/format.ts';
import { Icon } from '../ui/icon.tsx';

const signs = { added: '+', removed: '−', changed: '~' } as const;
const shownAtFirst = 100;

/** Files of a workspace that differ, each with its changed lines. */
export function FileDiffs({ files }: { readonly files: readonly FileDiff[] }): ReactNode {
  const [shown, setShown] = useState(shownAtFirst);
  return (
    <>
      {files.slice(0, shown).map((file) => (
        <OneFile
          key={file.path}
          file={file}
          isOpen={files.length <= 5 && file.change === 'changed'}
        />
      ))}
      {files.length > shown && (
        <button
          type="button"
          className="text-button"
          onClick={() => setShown(shown + 10 * shownAtFirst)}
        >
          {plural(files.length - shown, 'more file')}
        </button>
      )}
    </>
  );
}

function OneFile({
  file: { path, change, lines },
  isOpen,
}: {
  readonly file: FileDiff;
  readonly isOpen: boolean;
}): ReactNode {
  return (
    <details className="fold file-change" open={isOpen}>
      <summary>
        <Icon name="chevron" size={12} />
        <span className="sign" role="img" aria-label={change}>
          {signs[change]}
        </span>
        <span className="path">{path}</span>
      </summary>
      <Lines path={path} change={change} lines={lines} />
    </details>
  );
}

function Lines({ path, change, lines }: Pick<FileDiff, 'path' | 'change' | 'lines'>): ReactNode {
  if (lines === undefined) return <p className="quiet">Not a text, or too large to compare.</p>;
  if (lines.length === 0) {
    return (
      <p className="quiet">
        {change === 'changed'
          ? 'Only whether it can be executed has changed, or what it is.'
          : 'The file is empty.'}
      </p>
    );
  }
  return <LineTable lines={lines.map(toShown)} label={`Lines of ${path}`} />;
}

function toShown(
  { kind, text, before, after }: NonNullable<FileDiff['lines']>[number],
  at: number,
): Shown {
  if (before === undefined && after === undefined) return { kind: 'gap', at };
  return {
    kind,
    text,
    ...(before !== undefined && { before }),
    ...(after !== undefined && { after }),
  };
}
