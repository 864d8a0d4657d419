import type { chat } from './react-agent.ts';

// #region chat

import { useAgent } from 'waymark/react';

export function Chat({ url, sessionId }: { url: string; sessionId?: string }) {
  const options = { url, agent: 'chat', sessionId };
  const { messages, interrupts, error, send, resume } = useAgent<typeof chat>(options);
  const approve = () => resume((request) => request.approve());
  const decline = () => resume((request) => request.decline());
  return (
    <main>
      {messages.map(({ index, role, text, reasoning, files, toolCalls }) => (
        <article key={index} className={role}>
          {reasoning && <details>{reasoning}</details>}
          {toolCalls.map(({ key, name, input, output, status }) => (
            <pre key={key}>{JSON.stringify({ name, input, output, status })}</pre>
          ))}
          {text && <p>{text}</p>}
          {files.map((file) => (
            <img key={file.url} src={file.url} alt="" />
          ))}
        </article>
      ))}
      {interrupts.length > 0 && <input type="button" value="Approve" onClick={approve} />}
      {interrupts.length > 0 && <input type="button" value="Decline" onClick={decline} />}
      {error && <p role="alert">{error.message}</p>}
      <form action={(form) => void send(String(form.get('text')))}>
        <input name="text" aria-label="Message" />
      </form>
    </main>
  );
}

// #endregion

// #region timeline

import { toTimeline } from 'waymark/react';

export function Timeline({ url, sessionId }: { url: string; sessionId: string }) {
  const { timeline, restore, fork } = useAgent<typeof chat>({
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
          <button type="button" onClick={() => restore(snapshot)}>
            Restore
          </button>
          <button type="button" onClick={() => fork(snapshot)}>
            Fork
          </button>
        </li>
      ))}
    </ol>
  );
}
// #endregion
