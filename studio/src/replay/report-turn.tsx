import type { ReactNode } from 'react';
import { textOf } from '../../../src/protocol/messages.ts';
import type { Divergence } from '../../../src/replay/compare.ts';
import type { TurnReport } from '../../../src/replay/report.ts';
import { duration } from '../lib/format.ts';
import { placeHash } from '../lib/place.ts';
import { costText } from '../lib/usage.ts';

/** The kinds of differences, as a filter names them. */
export const kindNames: Readonly<Record<Divergence['kind'], string>> = {
  toolCall: 'Tool calls',
  toolResult: 'Tool results',
  custom: 'Custom state',
  artifact: 'Artifacts',
  text: 'Text',
  content: 'Other content',
  finishReason: 'Finish reason',
  model: 'Model',
  tokens: 'Tokens',
  cost: 'Cost',
  time: 'Time',
};

/** One turn of a report: both sides, their differences and scores. */
export function ReportTurn({ turn }: { readonly turn: TurnReport }): ReactNode {
  const { agent, sessionId, snapshotId, turnIndex, divergences, scores, missingEffects } = turn;
  const place = { view: 'chat', agent, session: sessionId, snapshot: snapshotId } as const;
  return (
    <article className="report-turn">
      <h2 className="section-title">
        Turn {turnIndex + 1}{' '}
        <a className="quiet" href={placeHash(place)} dir="auto">
          {agent} · {sessionId}
        </a>{' '}
        <span className={divergences.length === 0 ? 'report-same' : 'turn-fault'}>
          {divergences.length === 0 ? 'same' : 'differs'}
        </span>
      </h2>
      <p dir="auto">
        <b>Input</b> {inputText(turn)}
      </p>
      <div className="report-sides">
        <Side title="Recorded" side={turn.recorded} />
        <Side title="Replayed" side={turn.replayed} />
      </div>
      {divergences.length > 0 && (
        <table className="figures report-differences" aria-label="Differences">
          <thead>
            <tr>
              <th scope="col">Where</th>
              <th scope="col">Recorded</th>
              <th scope="col">Replayed</th>
            </tr>
          </thead>
          <tbody>
            {divergences.map(({ path, recorded, replayed }) => (
              <tr key={path}>
                <th scope="row">{path}</th>
                <td>{valueText(recorded)}</td>
                <td>{valueText(replayed)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {scores.map(({ name, score, reason }) => (
        <p key={name} className="quiet" dir="auto">
          {name}: {score.toFixed(2)} {reason !== undefined && `(${reason})`}
        </p>
      ))}
      {missingEffects.map((text) => (
        <p key={text} className="quiet">
          {text}
        </p>
      ))}
    </article>
  );
}

function inputText({ input: { message, resume = {} } }: TurnReport): string {
  if (message !== undefined) return textOf(message) || valueText(message);
  const { respond = [], restart = [] } = resume;
  return [
    ...respond.map(({ toolResponse: { name, output } }) => `${name} answered ${valueText(output)}`),
    ...restart.map(({ toolRequest: { name } }) => `${name} approved`),
  ].join(', ');
}

function Side({
  title,
  side,
}: {
  readonly title: string;
  readonly side: TurnReport['recorded'];
}): ReactNode {
  const { text, toolCalls, finishReason, tokens, time, error } = side;
  const facts = [finishReason, `${tokens.toLocaleString()} tokens`, duration(time), costText(side)];
  return (
    <div>
      <h3 className="quiet">{title}</h3>
      {toolCalls.map(({ name, input, output, interrupt }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a call is known by its place
        <code key={at}>
          {name}({valueText(input)}){' '}
          {interrupt === undefined ? `→ ${valueText(output)}` : `waits: ${valueText(interrupt)}`}
        </code>
      ))}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <pre tabIndex={0} dir="auto">
        {text}
      </pre>
      {error && (
        <p className="turn-fault" dir="auto">
          {error.status}: {error.message}
        </p>
      )}
      <p className="quiet">{facts.filter(Boolean).join(' · ')}</p>
    </div>
  );
}

/** Longer values are cut: a report is for reading. */
const maxLength = 20_000;

function valueText(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? '–');
  return text.length <= maxLength
    ? text
    : `${text.slice(0, maxLength)}… (${text.length} characters)`;
}
