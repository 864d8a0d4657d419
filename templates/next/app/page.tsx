'use client';

import { useState } from 'react';
import { useAgent } from 'waymark/react';
import type { desk } from '../agents.ts';

export default function Page() {
  const [text, setText] = useState('');
  const { messages, phase, error, custom, send, stop, resume } = useAgent<typeof desk>({
    url: '/api',
    agent: 'desk',
  });
  return (
    <main>
      <h1>Support desk</h1>
      {messages.map(({ index, role, text, toolCalls }) => (
        <div key={index}>
          <b>{role}</b> {text}
          {toolCalls.map(({ key, name, input, status, interrupt }) => (
            <p key={key}>
              {name} {JSON.stringify(input)}: {status}
              {interrupt && (
                <>
                  <button type="button" onClick={() => resume(interrupt.approve())}>
                    Approve
                  </button>
                  <button type="button" onClick={() => resume(interrupt.decline())}>
                    Decline
                  </button>
                </>
              )}
            </p>
          ))}
        </div>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          setText('');
          void send(text);
        }}
      >
        <input
          aria-label="Message"
          placeholder="Where is order 7?"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        {phase === 'ready' ? (
          <button type="submit">Send</button>
        ) : (
          <button type="button" onClick={() => stop()}>
            Stop
          </button>
        )}
      </form>
      <p>Refunds: {custom?.refunds.length ?? 0}</p>
    </main>
  );
}
