'use client';

import { useState } from 'react';
import { useAgent } from 'waymark/react';
import type { desk } from '../agents.ts';

export default function Page() {
  const [text, setText] = useState('');
  const { messages, interrupts, phase, error, custom, send, stop, restart } = useAgent<typeof desk>(
    {
      url: '/api',
      agent: 'desk',
    },
  );
  return (
    <main>
      <h1>Support desk</h1>
      {messages.map(({ role, content }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: messages are only appended.
        <p key={index}>
          <b>{role}</b> {content.map((part) => ('text' in part ? part.text : '')).join('')}
        </p>
      ))}
      {interrupts.map(({ key, name, input }) => (
        <p key={key}>
          Approve {name} {JSON.stringify(input)}?
          <button type="button" onClick={() => restart(key, true)}>
            Approve
          </button>
          <button type="button" onClick={() => restart(key, { approved: false })}>
            Decline
          </button>
        </p>
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
