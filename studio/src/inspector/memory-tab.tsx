import { type ReactNode, useEffect, useState } from 'react';
import type { MemoryOfTurn } from '../../../src/client/index.ts';
import type { Json } from '../../../src/core/json/json.ts';
import { plural } from '../lib/format.ts';
import { MemoryValue } from '../memory/memory-card.tsx';
import { useWorkbench } from '../shell/workbench.tsx';
import { Empty } from '../ui/empty.tsx';

/** What the turn of a snapshot knew from memory, and what it has learned. */
export function MemoryTab({ snapshotId }: { readonly snapshotId: string | undefined }): ReactNode {
  const { agent } = useWorkbench();
  const [found, setFound] = useState<MemoryOfTurn | 'none'>();
  useEffect(() => {
    let isCurrent = true;
    setFound(undefined);
    if (snapshotId === undefined) return;
    agent.memory.ofTurn(snapshotId).then(
      (memory) => isCurrent && setFound(memory),
      () => isCurrent && setFound('none'),
    );
    return () => {
      isCurrent = false;
    };
  }, [agent, snapshotId]);
  if (found === undefined && snapshotId !== undefined) return <p className="quiet">Reading…</p>;
  if (found === undefined || found === 'none') {
    return (
      <Empty title="No memory.">
        <p>What a turn knew from other sessions, and what it learned, is shown here.</p>
      </Empty>
    );
  }
  const { given, deleted, learned } = found;
  return (
    <div className="state">
      <section>
        <h3>What it knew</h3>
        {given.length === 0 && <p className="quiet">Nothing was in its prompt.</p>}
        <ul className="memory-versions">
          {given.map(({ version, value }) => (
            <li key={version}>
              <MemoryValue value={value as Json} />
            </li>
          ))}
        </ul>
        {deleted > 0 && (
          <p className="quiet">{plural(deleted, 'more entry', 'more entries')}, deleted since.</p>
        )}
      </section>
      <section>
        <h3>What it learned</h3>
        {learned.length === 0 && <p className="quiet">Nothing.</p>}
        <ul className="memory-versions">
          {learned.map(({ version, value }) => (
            <li key={version}>
              <MemoryValue value={value as Json | undefined} />
            </li>
          ))}
        </ul>
      </section>
    </div>
  );
}
