import type { ReactNode } from 'react';
import { AnswerForm } from '../conversation/answer-form.tsx';
import { isRecord, type Json } from '../lib/json.ts';
import { FaultText } from '../ui/fault-text.tsx';
import { Icon } from '../ui/icon.tsx';
import { JsonTree } from '../ui/json-tree.tsx';
import type { ToolAnswer, ToolOutcome } from './tool-calls.ts';

/** The outcome of a tool call: the result, the error with its stack, or a question. */
export function ToolResult({
  tool,
  outcome,
  isRunning,
  onAnswer,
}: {
  readonly tool: string;
  readonly outcome: ToolOutcome | undefined;
  readonly isRunning: boolean;
  readonly onAnswer: (answer: ToolAnswer) => void;
}): ReactNode {
  return (
    <section className="tool-outcome" aria-label={`Result of ${tool}`} aria-live="polite">
      {isRunning && <p className="quiet">Running…</p>}
      {outcome && 'output' in outcome && (
        <>
          <p className="fold-title">Output</p>
          <JsonTree value={outcome.output} label={`Output of ${tool}`} open={3} />
          {outcome.content.length > 0 && (
            <>
              <p className="fold-title">Attached</p>
              <JsonTree value={[...outcome.content]} label={`Attached by ${tool}`} open={2} />
            </>
          )}
          {outcome.custom !== undefined && (
            <>
              <p className="fold-title">State after the call (not saved)</p>
              <JsonTree value={outcome.custom} label={`State after ${tool}`} open={3} />
            </>
          )}
        </>
      )}
      {outcome && 'failed' in outcome && (
        <>
          <p className="fault-text" dir="auto">
            {outcome.failed.message}
          </p>
          {outcome.failed.stack !== '' && <FaultText text={outcome.failed.stack} />}
        </>
      )}
      {outcome && 'interrupted' in outcome && (
        <Asked interrupted={outcome.interrupted} isBusy={isRunning} onAnswer={onAnswer} />
      )}
    </section>
  );
}

/** A tool that asks: the question of an MCP server has a form, any other is answered with JSON. */
function Asked({
  interrupted,
  isBusy,
  onAnswer,
}: {
  readonly interrupted: Json;
  readonly isBusy: boolean;
  readonly onAnswer: (answer: ToolAnswer) => void;
}): ReactNode {
  const question = isRecord(interrupted) && isRecord(interrupted.schema) ? interrupted : undefined;
  const schema = isRecord(question?.schema) ? question.schema : undefined;
  const answer = (resumed: Json): void => onAnswer({ interrupted, resumed });
  return (
    <>
      <p className="interrupt-question" dir="auto">
        {typeof question?.message === 'string' ? question.message : 'The tool needs an answer.'}
      </p>
      {question === undefined && (
        <JsonTree value={interrupted} label="Question of the tool" open={2} />
      )}
      <AnswerForm
        // A new question has a new form.
        key={JSON.stringify(interrupted)}
        schema={schema ?? {}}
        submit="Send the answer"
        isBusy={isBusy}
        onAnswer={(content) => answer(question ? { action: 'accept', content } : content)}
      />
      {question && (
        <button
          type="button"
          className="button danger"
          disabled={isBusy}
          onClick={() => answer({ action: 'decline' })}
        >
          <Icon name="close" size={14} /> Decline
        </button>
      )}
    </>
  );
}
