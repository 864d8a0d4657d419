import { type ReactNode, useId, useState } from 'react';
import type { AgentInfo, InterruptAnswer } from '../../../src/client/index.ts';
import type { WaitingInterrupt } from '../../../src/react/index.ts';
import { brief, isRecord, type Json, type JsonRecord } from '../lib/json.ts';
import { fieldsOf } from '../lib/schema-form.ts';
import { Icon } from '../ui/icon.tsx';
import { AnswerForm } from './answer-form.tsx';

/** How answers are given: in a conversation, or in a list of all that waits. */
export interface AnswerActions {
  resume(answer: InterruptAnswer): Promise<unknown>;
  send(text: string): Promise<unknown>;
}

interface CardProps {
  readonly interrupt: WaitingInterrupt;
  readonly tool: NonNullable<AgentInfo['tools']>[number] | undefined;
  readonly actions: AnswerActions;
  readonly isBusy: boolean;
}

/** A tool call that waits for approval: what it would do, and the possible answers. */
export function InterruptCard({ interrupt, tool, actions, isBusy }: CardProps): ReactNode {
  const heading = useId();
  const { toolName, answer } = interrupt;
  const form = elicitedSchema(interrupt);
  const isQuestion = tool?.interrupt === true || form !== undefined;
  return (
    // biome-ignore lint/a11y/useSemanticElements: a page may show several alike, so it is no region; a fieldset has no heading
    <div role="group" className="interrupt" aria-labelledby={heading}>
      <header>
        <Icon name="question" />
        <h2 id={heading}>
          {isQuestion ? `${toolName} needs your answer` : `${toolName} needs your approval`}
        </h2>
      </header>
      {questionOf(interrupt) && (
        <p className="interrupt-question" dir="auto">
          {questionOf(interrupt)}
        </p>
      )}
      {tool?.description && <p className="quiet">{tool.description}</p>}
      <Asked interrupt={interrupt} tool={tool} />
      {answer ? (
        <p className="quiet">Answered. The turn continues when all calls are answered.</p>
      ) : form ? (
        <Elicited interrupt={interrupt} schema={form} actions={actions} isBusy={isBusy} />
      ) : isQuestion ? (
        <Question interrupt={interrupt} tool={tool} actions={actions} isBusy={isBusy} />
      ) : (
        <Approval interrupt={interrupt} tool={tool} actions={actions} isBusy={isBusy} />
      )}
    </div>
  );
}

/** A question of an MCP server: the tool runs again with the answer. */
function Elicited({
  interrupt,
  schema,
  actions,
  isBusy,
}: Omit<CardProps, 'tool'> & { readonly schema: JsonRecord }): ReactNode {
  const answer = (resumed: Json): void => void actions.resume(interrupt.approve({ resumed }));
  return (
    <>
      <AnswerForm
        schema={schema}
        submit="Send the answer"
        isBusy={isBusy}
        onAnswer={(content) => answer({ action: 'accept', content })}
      />
      <button
        type="button"
        className="button danger"
        disabled={isBusy}
        onClick={() => answer({ action: 'decline' })}
      >
        <Icon name="close" size={14} /> Decline
      </button>
    </>
  );
}

function Question({ interrupt, tool, actions, isBusy }: CardProps): ReactNode {
  return (
    <>
      <AnswerForm
        schema={tool?.outputSchema}
        submit="Send the answer"
        isBusy={isBusy}
        onAnswer={(output) => void actions.resume(interrupt.respond(output))}
      />
      <Decline interrupt={interrupt} actions={actions} isBusy={isBusy} />
    </>
  );
}

function Approval({ interrupt, tool, actions, isBusy }: CardProps): ReactNode {
  const { toolName, interrupts } = interrupt;
  return (
    <>
      <div className="interrupt-buttons">
        <button
          type="button"
          className="button primary"
          disabled={isBusy}
          onClick={() => void actions.resume(interrupt.approve())}
        >
          <Icon name="check" size={14} /> Approve
        </button>
        <Decline interrupt={interrupt} actions={actions} isBusy={isBusy} />
      </div>
      {interrupts.length === 0 && (
        <details className="fold">
          <summary>
            <Icon name="chevron" size={12} /> Respond for the tool
          </summary>
          <div className="fold-body">
            <p className="quiet">{toolName} does not run; the agent gets this response instead.</p>
            <AnswerForm
              schema={tool?.outputSchema}
              submit="Answer"
              isBusy={isBusy}
              onAnswer={(output) => void actions.resume(interrupt.respond(output))}
            />
          </div>
        </details>
      )}
    </>
  );
}

/** The way to say no, apart from the way to say yes. */
function Decline({ interrupt, actions, isBusy }: Omit<CardProps, 'tool'>): ReactNode {
  const [reason, setReason] = useState('');
  const decline = (): void =>
    void actions.resume(interrupt.decline(reason.trim() === '' ? undefined : reason.trim()));
  return (
    <span className="decline">
      <input
        type="text"
        dir="auto"
        value={reason}
        placeholder="Reason (optional)"
        aria-label="Reason for declining"
        onChange={(event) => setReason(event.target.value)}
      />
      <button type="button" className="button danger" disabled={isBusy} onClick={decline}>
        <Icon name="close" size={14} /> Decline
      </button>
    </span>
  );
}

/** The input of the tool, field by field. */
function Asked({ interrupt, tool }: Pick<CardProps, 'interrupt' | 'tool'>): ReactNode {
  const { interrupts } = interrupt;
  if (interrupts.length > 0) {
    return interrupts.map((inner) => (
      <div key={inner.key}>
        <p className="quiet">Inside it, {inner.toolName} waits:</p>
        <Asked interrupt={inner} tool={undefined} />
      </div>
    ));
  }
  return <Fields value={interrupt.input} schema={tool?.inputSchema} />;
}

function Fields({
  value,
  schema,
}: {
  readonly value: Json | undefined;
  readonly schema: JsonRecord | undefined;
}): ReactNode {
  if (!isRecord(value))
    return value === undefined ? null : <p className="mono">{brief(value, 400)}</p>;
  const described = fieldsOf(schema) ?? [];
  const entries = Object.entries(value);
  if (entries.length === 0) return null;
  return (
    <dl className="asked">
      {entries.map(([name, field]) => (
        <div key={name}>
          <dt>{described.find((each) => each.name === name)?.label ?? name}</dt>
          <dd dir="auto">{typeof field === 'string' ? field : brief(field, 400)}</dd>
        </div>
      ))}
    </dl>
  );
}

function questionOf({ metadata: data }: WaitingInterrupt): string | undefined {
  if (typeof data === 'string') return data;
  if (!isRecord(data)) return undefined;
  const asked = ['question', 'message', 'prompt', 'reason', 'title'].map((name) => data[name]);
  return asked.find((each) => typeof each === 'string');
}

/** The schema of the answer that an MCP server asks for. */
function elicitedSchema({ metadata }: WaitingInterrupt): JsonRecord | undefined {
  if (!isRecord(metadata) || !isRecord(metadata.elicitation)) return undefined;
  return isRecord(metadata.schema) ? metadata.schema : undefined;
}
