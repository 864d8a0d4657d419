import type { GivenAnswers, WaitingInterrupt } from 'waymark/react';

// #region approval
/** A refund that waits for the employee. */
export function Approval({
  request,
  resume,
}: {
  readonly request: WaitingInterrupt;
  resume(answer: GivenAnswers): Promise<unknown>;
}) {
  return (
    <div className="waiting">
      <p>{questionOf(request.metadata)}</p>
      <button type="button" onClick={() => void resume(request.approve())}>
        Approve
      </button>
      <button type="button" onClick={() => void resume(request.decline('Not approved.'))}>
        Decline
      </button>
    </div>
  );
}
// #endregion

function questionOf(metadata: unknown): string {
  const isQuestion = typeof metadata === 'object' && metadata !== null && 'question' in metadata;
  return isQuestion ? String(metadata.question) : 'Approve this call?';
}
