import { type ReactNode, useMemo } from 'react';
import type { FileDiff, Message, State } from '../../../src/client/index.ts';
import { jsonEqual } from '../../../src/core/json/json.ts';
import { textOf } from '../../../src/protocol/messages.ts';
import { FileDiffs } from '../files/file-diffs.tsx';
import { type ArtifactChange, artifactChanges, artifactText } from '../lib/artifacts.ts';
import { plural } from '../lib/format.ts';
import { brief } from '../lib/json.ts';
import { type Change, changesBetween, pathText } from '../lib/json-changes.ts';
import { Empty } from '../ui/empty.tsx';
import { Icon } from '../ui/icon.tsx';
import { LineDiff } from './line-diff-view.tsx';

const signs = { added: '+', removed: '−', changed: '~' } as const;

/** The differences from one state to another: custom state by path, files by line, messages by count. */
export function StateChanges({
  before,
  after,
  workspace = [],
  withMessages = true,
}: {
  readonly before: State | undefined;
  readonly after: State | undefined;
  /** Files of the workspace that differ. @default none */
  readonly workspace?: readonly FileDiff[] | undefined;
  /** Left out where the messages themselves are shown. @default true */
  readonly withMessages?: boolean;
}): ReactNode {
  const custom = useMemo(() => changesBetween(before?.custom, after?.custom), [before, after]);
  const files = useMemo(
    () => artifactChanges(before?.artifacts ?? [], after?.artifacts ?? []),
    [before, after],
  );
  const messages = useMemo(
    () => messageChanges(before?.messages ?? [], after?.messages ?? []),
    [before, after],
  );
  const isSilent = !withMessages || messages.added.length + messages.removed.length === 0;
  if (custom.length + files.length + workspace.length === 0 && isSilent) {
    return <Empty title="Nothing changed." />;
  }
  return (
    <div className="changes">
      {custom.length > 0 && (
        <section>
          <h3>Custom state</h3>
          <ul className="path-changes">
            {custom.slice(0, 200).map((change) => (
              <PathChange key={pathText(change.path)} change={change} />
            ))}
          </ul>
          {custom.length > 200 && <p className="quiet">and {custom.length - 200} more</p>}
        </section>
      )}
      {files.length > 0 && (
        <section>
          <h3>Files</h3>
          {files.map((change) => (
            <FileChange key={change.name} change={change} />
          ))}
        </section>
      )}
      {workspace.length > 0 && (
        <section>
          <h3>Workspace</h3>
          <FileDiffs files={workspace} />
        </section>
      )}
      {!isSilent && (
        <section>
          <h3>Messages</h3>
          <MessageList sign="−" messages={messages.removed} />
          <MessageList sign="+" messages={messages.added} />
        </section>
      )}
    </div>
  );
}

function PathChange({
  change: { path, kind, before, after },
}: {
  readonly change: Change;
}): ReactNode {
  return (
    <li className={`path-change ${kind}`}>
      <span className="sign" role="img" aria-label={kind}>
        {signs[kind]}
      </span>
      <span className="path">{pathText(path)}</span>
      <span className="values">
        {before !== undefined && <del dir="auto">{brief(before, 200)}</del>}
        {after !== undefined && <ins dir="auto">{brief(after, 200)}</ins>}
      </span>
    </li>
  );
}

function FileChange({
  change: { name, kind, before, after },
}: {
  readonly change: ArtifactChange;
}): ReactNode {
  return (
    <details className="fold file-change" open={kind === 'changed'}>
      <summary>
        <Icon name="chevron" size={12} />
        <span className="sign" role="img" aria-label={kind}>
          {signs[kind]}
        </span>
        <span className="path">{name}</span>
      </summary>
      <LineDiff
        before={before ? artifactText(before) : ''}
        after={after ? artifactText(after) : ''}
        label={`Lines of ${name}`}
      />
    </details>
  );
}

function MessageList({
  sign,
  messages,
}: {
  readonly sign: '+' | '−';
  readonly messages: readonly Message[];
}): ReactNode {
  if (messages.length === 0) return null;
  const shown = messages.slice(0, 12);
  return (
    <ul className={sign === '+' ? 'message-changes added' : 'message-changes removed'}>
      {shown.map((message, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a message is known by its place
        <li key={at}>
          <span className="sign" role="img" aria-label={sign === '+' ? 'added' : 'removed'}>
            {sign}
          </span>
          <span className="role">{message.role}</span>
          <span className="snippet" dir="auto">
            {snippet(message)}
          </span>
        </li>
      ))}
      {messages.length > shown.length && (
        <li className="quiet">and {plural(messages.length - shown.length, 'more', 'more')}</li>
      )}
    </ul>
  );
}

function snippet(message: Message): string {
  const text = textOf(message).trim();
  if (text !== '') return text.slice(0, 140);
  return message.content
    .map((part) => {
      if ('toolRequest' in part) return `calls ${part.toolRequest.name}`;
      if ('toolResponse' in part)
        return `${part.toolResponse.name}: ${brief(part.toolResponse.output, 80)}`;
      return Object.keys(part)[0] ?? '';
    })
    .join(', ');
}

/** Messages are appended, so what two conversations share is their beginning. */
function messageChanges(
  before: readonly Message[],
  after: readonly Message[],
): { readonly added: readonly Message[]; readonly removed: readonly Message[] } {
  let same = 0;
  const isSameAt = (at: number): boolean =>
    before[at]?.role === after[at]?.role && jsonEqual(before[at]?.content, after[at]?.content);
  while (same < Math.min(before.length, after.length) && isSameAt(same)) same++;
  return { added: after.slice(same), removed: before.slice(same) };
}
