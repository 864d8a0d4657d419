import { memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

export const app = waymark({
  model: scriptedModel({ patterns: [], otherwise: 'Hello.' }),
  store: memoryStore(),
});
export const chat = app.defineAgent({
  name: 'chat',
  state: z.object({ topics: z.array(z.string()) }),
});

// #region chat

import { useState } from 'react';
import { useAgent } from 'waymark/react';

export function Chat({ url, sessionId }: { url: string; sessionId?: string }) {
  const [text, setText] = useState('');
  const { messages, phase, interrupts, error, send, stop, restart, respond } = useAgent<
    typeof chat
  >({
    url,
    agent: 'chat',
    ...(sessionId !== undefined && { sessionId }),
  });
  return (
    <main>
      {messages.map(({ role, content }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a message's place is what it is.
        <p key={at}>
          <b>{role}</b> {content.map((part) => ('text' in part ? part.text : '')).join('')}
        </p>
      ))}
      {interrupts.map(({ key, name, input }) => (
        <p key={key}>
          {name} {JSON.stringify(input)}
          <button type="button" onClick={() => restart(key, true)}>
            Approve
          </button>
          <button type="button" onClick={() => respond(key, 'The user declined.')}>
            Decline
          </button>
        </p>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <input value={text} onChange={(event) => setText(event.target.value)} />
      {phase === 'ready' ? (
        <button type="button" onClick={() => send(text)}>
          Send
        </button>
      ) : (
        <button type="button" onClick={() => stop()}>
          Stop
        </button>
      )}
    </main>
  );
}

// #endregion

// #region timeline

import { toTimeline } from 'waymark/react';

export function Timeline({ url, sessionId }: { url: string; sessionId: string }) {
  const { timeline, goBack, branch } = useAgent<typeof chat>({
    url,
    agent: 'chat',
    sessionId,
    timeline: true,
  });
  return (
    <ol>
      {toTimeline(timeline).map(({ snapshot, lane, active }) => (
        <li key={snapshot.snapshotId} data-active={active} style={{ marginLeft: lane * 16 }}>
          Turn {snapshot.turnIndex + 1}
          <button type="button" onClick={() => goBack(snapshot.snapshotId)}>
            Go back here
          </button>
          <button type="button" onClick={() => branch(snapshot.snapshotId)}>
            Branch here
          </button>
        </li>
      ))}
    </ol>
  );
}
// #endregion
