import { useEffect } from 'react';
import { useAgent } from 'waymark/react';
import type { Desk } from '../desk.ts';
import { Approval } from './approval.tsx';

/** One conversation: messages, approvals, and the state of the desk. */
export function Conversation({
  sessionId,
  onTurn,
}: {
  readonly sessionId?: string;
  onTurn(): void;
}) {
  // #region conversation
  const chat = useAgent<Desk>({ url: '/api', agent: 'desk', sessionId });
  const { messages, interrupts, custom, error, phase, send, resume } = chat;
  // #endregion
  // biome-ignore lint/correctness/useExhaustiveDependencies: only the end of a turn counts
  useEffect(() => {
    if (phase === 'ready' && messages.length > 0) onTurn();
  }, [phase]);
  return (
    <section aria-label="Conversation" data-phase={phase}>
      {messages.map(({ index, role, text, toolCalls }) => (
        <article key={index} className={role}>
          {toolCalls.map(({ key, name, status }) => (
            <p key={key} className="call">{`${name}: ${status}`}</p>
          ))}
          {text}
        </article>
      ))}
      {interrupts.map((request) => (
        <Approval key={request.key} request={request} resume={resume} />
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form action={(form) => void send(String(form.get('text')))}>
        <input name="text" aria-label="Message" autoComplete="off" />
        <button type="submit" disabled={phase !== 'ready'}>
          Send
        </button>
        {phase === 'running' && (
          <button type="button" onClick={() => void chat.stop()}>
            Stop
          </button>
        )}
      </form>
      <h2>Refunds</h2>
      <ul>
        {custom?.refunds.map(({ order, euros, payment }) => (
          <li key={payment}>{`${euros} € of order ${order} (${payment})`}</li>
        ))}
      </ul>
    </section>
  );
}
