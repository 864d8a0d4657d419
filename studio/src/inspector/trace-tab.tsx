import { type ReactNode, useMemo, useState } from 'react';
import { useAgentValue } from '../../../src/react/index.ts';
import { RecordedCall } from '../calls/recorded-call.tsx';
import { count, duration } from '../lib/format.ts';
import { type SpanRow, spansOfTurn } from '../lib/span-tree.ts';
import type { TraceSpan } from '../lib/traces.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { Empty } from '../ui/empty.tsx';
import { FaultText } from '../ui/fault-text.tsx';
import { Icon } from '../ui/icon.tsx';
import type { Subject } from './use-subject.ts';

/** The steps of a turn and their durations. */
export function TraceTab({ subject }: { readonly subject: Subject }): ReactNode {
  const { spans } = useWorkbench();
  const rows = useMemo(() => rowsFor(spans ?? [], subject), [spans, subject]);
  if (spans === undefined) {
    return (
      <Empty title="This server keeps no traces.">
        <p>A server records traces only if it serves Studio without authentication.</p>
      </Empty>
    );
  }
  const [root] = rows;
  if (!root) {
    return (
      <Empty title="No trace of this turn.">
        <p>
          The server records the latest turns. <code>waymark dev</code> also keeps them when it
          restarts.
        </p>
      </Empty>
    );
  }
  return <Waterfall rows={rows} root={root.span} />;
}

function rowsFor(spans: readonly TraceSpan[], { snapshot, isLive }: Subject): readonly SpanRow[] {
  if (snapshot) return spansOfTurn(spans, snapshot);
  if (!isLive) return [];
  const turn = spans.findLast(
    ({ name, endedAt }) => name.startsWith('turn ') && endedAt === undefined,
  );
  const { attributes } = turn ?? {};
  if (!attributes) return [];
  const now = new Date().toISOString();
  return spansOfTurn(spans, {
    snapshotId: '',
    sessionId: String(attributes['waymark.session.id']),
    turnIndex: Number(attributes['waymark.turn.index']),
    createdAt: now,
    updatedAt: now,
  });
}

function Waterfall({
  rows,
  root,
}: {
  readonly rows: readonly SpanRow[];
  readonly root: TraceSpan;
}): ReactNode {
  const end = Math.max(...rows.map(({ span }) => span.endedAt ?? Date.now()), root.startedAt + 1);
  const total = end - root.startedAt;
  const calls = rows.filter(({ span }) => span.name.startsWith('chat '));
  const tools = rows.filter(({ span }) => span.name.startsWith('execute_tool '));
  return (
    <div className="trace">
      <dl className="facts">
        <div>
          <dt>Took</dt>
          <dd>{duration(total)}</dd>
        </div>
        <div>
          <dt>Model calls</dt>
          <dd>{calls.length}</dd>
        </div>
        <div>
          <dt>Tools</dt>
          <dd>{tools.length}</dd>
        </div>
        <div>
          <dt>Tokens</dt>
          <dd>{count(rows.reduce((sum, { span }) => sum + tokensOf(span), 0))}</dd>
        </div>
      </dl>
      <div className="scale" aria-hidden="true">
        <span>0</span>
        <span>{duration(total / 2)}</span>
        <span>{duration(total)}</span>
      </div>
      <ul className="spans">
        {rows.map((row) => (
          <Span key={row.span.spanId} row={row} start={root.startedAt} total={total} />
        ))}
      </ul>
    </div>
  );
}

function Span({
  row,
  start,
  total,
}: {
  readonly row: SpanRow;
  readonly start: number;
  readonly total: number;
}): ReactNode {
  const [isOpen, setOpen] = useState(false);
  const { span, depth } = row;
  const ends = span.endedAt ?? Date.now();
  const tokens = tokensOf(span);
  return (
    <li className="span" data-kind={kindOf(span)}>
      <button type="button" onClick={() => setOpen(!isOpen)} aria-expanded={isOpen}>
        <span className="span-name" style={{ paddingInlineStart: depth * 12 }}>
          <Icon name="chevron" size={12} />
          {span.error && <Icon name="warning" size={12} />}
          <span>{nameOf(span)}</span>
        </span>
        <span className="span-figures">
          {tokens > 0 && <span>{count(tokens)} tok</span>}
          <span>{span.endedAt === undefined ? 'running' : duration(ends - span.startedAt)}</span>
        </span>
        <span className="span-track" aria-hidden="true">
          <span
            className="span-bar"
            style={{
              insetInlineStart: `${((span.startedAt - start) / total) * 100}%`,
              inlineSize: `max(2px, ${((ends - span.startedAt) / total) * 100}%)`,
            }}
          />
        </span>
      </button>
      {isOpen && <SpanFacts span={span} />}
    </li>
  );
}

function SpanFacts({ span }: { readonly span: TraceSpan }): ReactNode {
  const { store } = useWorkbench();
  const sessionId = useAgentValue(store, (view) => view.sessionId);
  const facts = Object.entries(span.attributes).filter(([, value]) => value !== undefined);
  return (
    <div className="span-facts">
      {span.error && !span.hasContent && <FaultText text={span.error.text} />}
      {span.hasContent && sessionId !== undefined && (
        <RecordedCall span={span} sessionId={sessionId} />
      )}
      <details className="fold">
        <summary>
          <Icon name="chevron" size={12} /> Attributes
        </summary>
        <dl className="fold-body attributes">
          {facts.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd className="mono">{String(value)}</dd>
            </div>
          ))}
        </dl>
      </details>
    </div>
  );
}

function kindOf({ name }: TraceSpan): 'turn' | 'model' | 'tool' | 'agent' {
  if (name.startsWith('turn ')) return 'turn';
  if (name.startsWith('chat ')) return 'model';
  return name.startsWith('execute_tool ') ? 'tool' : 'agent';
}

function nameOf(span: TraceSpan): string {
  const [, ...rest] = span.name.split(' ');
  switch (kindOf(span)) {
    case 'turn':
      return `turn ${Number(rest[0]) + 1}`;
    case 'model':
      return `model ${rest.join(' ')}`;
    case 'tool':
      return `tool ${rest.join(' ')}`;
    case 'agent':
      return `agent ${rest.join(' ')}`;
  }
}

function tokensOf({ attributes }: TraceSpan): number {
  const of = (name: string): number => Number(attributes[name] ?? 0) || 0;
  return of('gen_ai.usage.input_tokens') + of('gen_ai.usage.output_tokens');
}
