import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  lastAssistantMessageIsCompleteWithApprovalResponses,
  type UIMessage,
} from 'ai';
import { useState } from 'react';
import { createRoot } from 'react-dom/client';

// A page as anybody would write it with `useChat`: what it knows of us is a URL.
const query = new URLSearchParams(location.search);
const api = query.get('api') ?? '';
const id = query.get('chat') ?? '';

function Chat({ messages: initial }: { readonly messages: UIMessage[] }): React.JSX.Element {
  const [text, setText] = useState('');
  // #region use-chat
  const { messages, sendMessage, stop, status, error, addToolApprovalResponse } = useChat({
    id,
    messages: initial,
    resume: initial.length > 0 || query.has('resume'),
    transport: new DefaultChatTransport({ api }),
    // Sends the answers to approvals as soon as there is one for each.
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  // #endregion
  return (
    <main data-status={status}>
      <ul>
        {messages.map(({ id: key, role, parts }) => (
          <li key={key} data-role={role}>
            {parts.map((part, at) => {
              // biome-ignore lint/suspicious/noArrayIndexKey: parts have no other key, and are never moved
              if (part.type === 'text') return <span key={at}>{part.text}</span>;
              if (!part.type.startsWith('tool-') || !('state' in part)) return null;
              const approval = 'approval' in part ? part.approval : undefined;
              return (
                // biome-ignore lint/suspicious/noArrayIndexKey: as above
                <code key={at} data-state={part.state}>
                  {part.type} {JSON.stringify('output' in part ? part.output : undefined)}
                  {part.state === 'approval-requested' &&
                    approval &&
                    [true, false].map((approved) => (
                      <button
                        key={String(approved)}
                        type="button"
                        onClick={() => void addToolApprovalResponse({ id: approval.id, approved })}
                      >
                        {approved ? 'Approve' : 'Decline'}
                      </button>
                    ))}
                </code>
              );
            })}
          </li>
        ))}
      </ul>
      <p role="alert">{error?.message}</p>
      <input aria-label="Message" value={text} onChange={(event) => setText(event.target.value)} />
      <button type="button" onClick={() => void sendMessage({ text })}>
        Send
      </button>
      <button type="button" onClick={() => void stop()}>
        Stop
      </button>
    </main>
  );
}

const response = await fetch(`${api}/${id}/messages`);
const messages: UIMessage[] = response.ok ? await response.json() : [];
const root = document.getElementById('root');
if (root) createRoot(root).render(<Chat messages={messages} />);
