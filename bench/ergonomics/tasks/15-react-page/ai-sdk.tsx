import { useChat } from '@ai-sdk/react';
import {
  DefaultChatTransport,
  getToolName,
  isToolUIPart,
  lastAssistantMessageIsCompleteWithApprovalResponses,
} from 'ai';

// #region task
function Page({ url }: { url: string }) {
  const { messages, sendMessage, addToolApprovalResponse } = useChat({
    transport: new DefaultChatTransport({ api: url }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
  });
  const answer = (id: string, approved: boolean) => addToolApprovalResponse({ id, approved });
  return (
    <main>
      {messages.flatMap(({ id, role, parts }) =>
        parts.map((part, index) => {
          if (part.type === 'text') {
            return (
              <p key={`${id}-${index}`}>
                {role}: {part.text}
              </p>
            );
          }
          if (!isToolUIPart(part) || part.state !== 'approval-requested') return null;
          return (
            <p key={part.toolCallId}>
              {getToolName(part)} {JSON.stringify(part.input)}
              <button type="button" onClick={() => answer(part.approval.id, true)}>
                Approve
              </button>
              <button type="button" onClick={() => answer(part.approval.id, false)}>
                Decline
              </button>
            </p>
          );
        }),
      )}
      <form action={(form) => void sendMessage({ text: String(form.get('text')) })}>
        <input name="text" aria-label="Message" />
      </form>
    </main>
  );
}

// #endregion

export { Page };
