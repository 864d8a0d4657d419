import { memo, StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { Chat as DocumentedChat } from '../../../docs/snippets/react.tsx';
import { client } from '../../../src/client/index.ts';
import {
  type AgentStore,
  type MessageView as MessageData,
  toTimeline,
  useAgent,
  useAgentStore,
  useAgentValue,
} from '../../../src/react/index.ts';
import type { TestApp } from '../../client/support/served.ts';

type Types = NonNullable<TestApp['chat']['~types']>;

const query = new URLSearchParams(location.search);
const url = query.get('api') ?? '';
const renders: Record<string, number> = {};
Object.assign(window, { renders });

function count(name: string): void {
  renders[name] = (renders[name] ?? 0) + 1;
}

const MessageView = memo(function MessageView({ message }: { message: MessageData }) {
  count('message');
  return (
    <li data-role={message.role}>
      {message.text}
      {message.toolCalls.map(({ key, name, status }) => (
        <span key={key}>{`[${name}: ${status}]`}</span>
      ))}
    </li>
  );
});

/** Everything from one hook. */
function Chat() {
  const [text, setText] = useState('');
  const chat = useAgent<TestApp['chat']>({
    url,
    agent: 'chat',
    timeline: true,
    ...(query.has('session') && { sessionId: query.get('session') ?? '' }),
  });
  return (
    <main data-phase={chat.phase} data-session={chat.sessionId} data-running={chat.running}>
      <ul>
        {chat.messages.map((message) => (
          <MessageView key={message.index} message={message} />
        ))}
      </ul>
      <p id="text">{chat.text}</p>
      <p id="custom">{JSON.stringify(chat.custom)}</p>
      <p id="error">{chat.error?.status}</p>
      {chat.interrupts.map((request) => (
        <p key={request.key} data-interrupt={request.toolName}>
          {JSON.stringify(request.metadata)}
          <button type="button" onClick={() => chat.resume(request.approve({ resumed: 'me' }))}>
            Approve
          </button>
          <button type="button" onClick={() => chat.resume(request.decline())}>
            Decline
          </button>
        </p>
      ))}
      <ol>
        {toTimeline(chat.timeline).map(({ snapshot, lane, active }) => (
          <li
            key={snapshot.snapshotId}
            data-lane={lane}
            data-active={active}
            data-status={snapshot.status}
          >
            <button type="button" onClick={() => chat.restore(snapshot)}>
              Go back to {snapshot.index}
            </button>
          </li>
        ))}
      </ol>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void chat.send(text);
          setText('');
        }}
      >
        <input
          value={text}
          onChange={(event) => setText(event.target.value)}
          aria-label="Message"
        />
        <button type="submit">Send</button>
      </form>
      <button type="button" onClick={() => chat.stop()}>
        Stop
      </button>
    </main>
  );
}

const chat = client<TestApp['chat']>({ url, agent: 'chat' });
const counter = client<TestApp['counter']>({ url, agent: 'counter' });

/** Parts of one view, each drawn for itself. */
function Parts() {
  count('parts');
  const store = useAgentStore({ agent: chat });
  return (
    <main>
      <Text store={store} />
      <Topics store={store} />
      <Reason store={store} />
      <button type="button" onClick={() => store.actions.send('wait for parts with 20 words')}>
        Send
      </button>
    </main>
  );
}

function Text({ store }: { store: AgentStore<Types> }) {
  count('text');
  const text = useAgentValue(store, (view) => view.text);
  const phase = useAgentValue(store, (view) => view.phase);
  return (
    <p id="text" data-phase={phase}>
      {text}
    </p>
  );
}

/** Selects a new object each time. */
function Reason({ store }: { store: AgentStore<Types> }) {
  const { finishReason } = useAgentValue(store, (view) => ({ finishReason: view.finishReason }));
  return <p id="reason">{finishReason}</p>;
}

function Topics({ store }: { store: AgentStore<Types> }) {
  count('topics');
  const topics = useAgentValue(store, (view) => view.custom?.topics);
  return <p id="topics">{topics?.join(', ')}</p>;
}

/** An agent that is at hand, its live state and status. */
function Counter() {
  const { custom, status, artifacts, send } = useAgent({ agent: counter, throttle: 0 });
  return (
    <main>
      <p id="count">{`${custom?.n} ${status?.at} ${artifacts.length}`}</p>
      <button type="button" onClick={() => send('count')}>
        Send
      </button>
    </main>
  );
}

const pages: Record<string, () => React.JSX.Element> = {
  chat: Chat,
  parts: Parts,
  counter: Counter,
  documented: () => <DocumentedChat url={url} />,
};
const Shown = pages[query.get('page') ?? 'chat'] ?? Chat;
const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <Shown />
    </StrictMode>,
  );
}
