import { type ReactNode, useMemo } from 'react';
import type { Snapshot } from '../../../src/client/index.ts';
import { loadedSkills } from '../../../src/protocol/loaded-skills.ts';
import { EditButton } from '../edit/edit-button.tsx';
import { customSubject } from '../edit/edit-subject.ts';
import { artifactChanges, artifactName, artifactSize } from '../lib/artifacts.ts';
import { faultOfSnapshot } from '../lib/faults.ts';
import { bytes, plural } from '../lib/format.ts';
import { changesBetween, pathText } from '../lib/json-changes.ts';
import { cacheText, costText } from '../lib/usage.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { CopyButton } from '../ui/copy-button.tsx';
import { Empty } from '../ui/empty.tsx';
import { FileName } from '../ui/file-name.tsx';
import { Icon } from '../ui/icon.tsx';
import { JsonTree } from '../ui/json-tree.tsx';
import { Time } from '../ui/time.tsx';
import type { Subject } from './use-subject.ts';

/** The whole state: custom, artifacts and messages, with what this turn changed marked. */
export function StateTab({ subject }: { readonly subject: Subject }): ReactNode {
  const { state, before, snapshot, isLive } = subject;
  const changed = useMemo(
    () =>
      before && state
        ? new Set(changesBetween(before.custom, state.custom).map(({ path }) => pathText(path)))
        : new Set<string>(),
    [before, state],
  );
  if (!state?.messages?.length && state?.custom === undefined) {
    return (
      <Empty title="No state yet.">
        <p>Messages, custom state and artifacts appear here after the first turn.</p>
      </Empty>
    );
  }
  return (
    <div className="state">
      <section>
        <h3>
          Custom state {isLive && <span className="chip">live</span>}
          <EditButton what="the custom state" subject={() => customSubject(state.custom)} />
        </h3>
        {state.custom === undefined ? (
          <p className="quiet">The agent has not set any.</p>
        ) : (
          <JsonTree value={state.custom} label="Custom state" changed={changed} open={2} />
        )}
      </section>
      <Artifacts subject={subject} />
      <Skills subject={subject} />
      <section>
        <h3>Messages</h3>
        <p>{plural(subject.messageCount, 'message')}</p>
      </section>
      {snapshot && <SnapshotFacts snapshot={snapshot} />}
    </div>
  );
}

function Artifacts({ subject: { state, before } }: { readonly subject: Subject }): ReactNode {
  const artifacts = state?.artifacts ?? [];
  const changes = useMemo(
    () =>
      new Set(
        before && state
          ? artifactChanges(before.artifacts ?? [], state.artifacts ?? []).map(({ name }) => name)
          : [],
      ),
    [before, state],
  );
  if (artifacts.length === 0) return null;
  return (
    <section>
      <h3>Artifacts</h3>
      <ul className="artifact-names">
        {artifacts.map((artifact, at) => {
          const name = artifactName(artifact, at);
          const version = artifact.metadata?.version;
          return (
            <li key={name} className={changes.has(name) ? 'changed' : undefined}>
              <Icon name="file" size={14} /> <FileName name={name} />
              {version !== undefined && <span className="chip">v{String(version)}</span>}
              <span className="quiet">{bytes(artifactSize(artifact))}</span>
              {changes.has(name) && <span className="changed-word">changed</span>}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** The skills that the conversation has loaded, with the version that was used last. */
function Skills({ subject: { state, before } }: { readonly subject: Subject }): ReactNode {
  const loaded = useMemo(() => loadedSkills(state?.messages ?? []), [state]);
  const earlier = useMemo(() => loadedSkills(before?.messages ?? []), [before]);
  if (loaded.size === 0) return null;
  return (
    <section>
      <h3>Skills</h3>
      <ul className="artifact-names" aria-label="Loaded skills">
        {[...loaded.values()].map(({ name, version, origin }) => {
          const isChanged = before !== undefined && earlier.get(name)?.version !== version;
          return (
            <li key={name} className={isChanged ? 'changed' : undefined}>
              <Icon name="file" size={14} /> <FileName name={name} />
              <span className="chip mono" title={`Hash of its files: ${version}`}>
                {version.slice(0, 8)}
              </span>
              {origin !== undefined && <span className="quiet">{origin}</span>}
              {isChanged && (
                <span className="changed-word">{earlier.has(name) ? 'changed' : 'loaded'}</span>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** When a snapshot was saved. */
const savedAt: Readonly<Record<Snapshot['event'], string>> = {
  turnEnd: 'at the end of the turn',
  toolIterationEnd: 'after a round of tool calls',
  invocationEnd: 'at the end of the connection',
  detach: 'when the run went to the background',
  edit: 'by an edit',
};

function SnapshotFacts({ snapshot }: { readonly snapshot: Snapshot }): ReactNode {
  const {
    snapshotId,
    parentId,
    stateHash,
    status,
    finishReason,
    event,
    createdAt,
    usage,
    error,
    edit,
  } = snapshot;
  const { spans } = useWorkbench();
  const thrown = faultOfSnapshot(spans, snapshotId);
  return (
    <section>
      <h3>Snapshot</h3>
      <dl className="facts column">
        <Fact name="Status">
          {status}
          {finishReason !== undefined && ` · ${finishReason}`}
        </Fact>
        {error && <Fact name="Error">{thrown?.message ?? error.message}</Fact>}
        <Fact name="Created">
          <Time iso={createdAt} form="clock" /> · {savedAt[event]}
        </Fact>
        {edit && (
          <Fact name="Edited">
            {edit.by !== undefined ? `by ${edit.by}` : 'in Studio or through the API'}
            {edit.reason !== undefined && `: ${edit.reason}`}
          </Fact>
        )}
        {usage && (
          <Fact name="Tokens">
            {usage.inputTokens ?? 0} in · {usage.outputTokens ?? 0} out
          </Fact>
        )}
        {usage && cacheText(usage) && <Fact name="Cache">{cacheText(usage)}</Fact>}
        {usage?.cost && <Fact name="Cost">{costText(usage)}</Fact>}
        <Fact name="Hash" copied={stateHash}>
          {stateHash.slice(0, 12)}…
        </Fact>
        <Fact name="Id" copied={snapshotId}>
          {snapshotId}
        </Fact>
        {parentId !== undefined && (
          <Fact name="Parent" copied={parentId}>
            {parentId}
          </Fact>
        )}
      </dl>
    </section>
  );
}

function Fact({
  name,
  copied,
  children,
}: {
  readonly name: string;
  readonly copied?: string;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd className={copied === undefined ? undefined : 'mono'}>
        <span>{children}</span>
        {copied !== undefined && (
          <CopyButton text={copied} label={`Copy the ${name.toLowerCase()}`} />
        )}
      </dd>
    </div>
  );
}
