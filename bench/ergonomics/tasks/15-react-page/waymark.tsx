import { useAgent } from 'waymark/react';
import type { desk } from '../06-ask-for-approval/waymark.ts';

// #region task
function Page({ url }: { url: string }) {
  const { messages, interrupts, send, resume } = useAgent<typeof desk>({ url, agent: 'desk' });
  return (
    <main>
      {messages.map(({ index, role, text }) => (
        <p key={index}>
          {role}: {text}
        </p>
      ))}
      {interrupts.map((request) => (
        <p key={request.key}>
          {request.toolName} {JSON.stringify(request.input)}
          <button type="button" onClick={() => resume(request.approve())}>
            Approve
          </button>
          <button type="button" onClick={() => resume(request.decline())}>
            Decline
          </button>
        </p>
      ))}
      <form action={(form) => void send(String(form.get('text')))}>
        <input name="text" aria-label="Message" />
      </form>
    </main>
  );
}

// #endregion

export { Page };
