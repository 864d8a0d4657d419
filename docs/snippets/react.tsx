import type { chat } from './react-agent.ts';

// #region chat

import { useAgent } from 'waymark/react';

export function Chat({ url, sessionId }: { url: string; sessionId?: string }) {
  const agent = useAgent<typeof chat>({ url, agent: 'chat', sessionId });
  const approve = () => agent.resume((request) => request.approve());
  const decline = () => agent.resume((request) => request.decline());
  return (
    <main>
      {agent.messages.map(({ index, role, text, reasoning, files, toolCalls }) => (
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
      {agent.interrupts.length > 0 && <input type="button" value="Approve" onClick={approve} />}
      {agent.interrupts.length > 0 && <input type="button" value="Decline" onClick={decline} />}
      {agent.error && <p role="alert">{agent.error.message}</p>}
      <form action={(form) => void agent.send(String(form.get('text')))}>
        <input name="text" aria-label="Message" />
        <input type="submit" value="Send" disabled={agent.phase !== 'ready'} />
      </form>
    </main>
  );
}

// #endregion

// #region headers
export function useChat(token: () => Promise<string>) {
  return useAgent<typeof chat>({
    url: 'https://agents.example.com',
    agent: 'chat',
    headers: async () => ({ authorization: `Bearer ${await token()}` }),
  });
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
