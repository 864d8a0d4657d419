import { MastraReactProvider, useChat } from '@mastra/react';

// #region task
function Page({ url }: { url: string }) {
  return (
    <MastraReactProvider baseUrl={url}>
      <Chat />
    </MastraReactProvider>
  );
}

function Chat() {
  const { messages, sendMessage, approveToolCall, declineToolCall } = useChat({ agentId: 'desk' });
  return (
    <main>
      {messages.flatMap(({ id, role, content: { parts, metadata } }) => [
        ...parts.map((part, index) =>
          part.type === 'text' ? (
            <p key={`${id}-${index}`}>
              {role}: {part.text}
            </p>
          ) : null,
        ),
        ...Object.values(metadata?.requireApprovalMetadata ?? {}).map((request) => (
          <p key={request.toolCallId}>
            {request.toolName} {JSON.stringify(request.args)}
            <button type="button" onClick={() => approveToolCall(request.toolCallId)}>
              Approve
            </button>
            <button type="button" onClick={() => declineToolCall(request.toolCallId)}>
              Decline
            </button>
          </p>
        )),
      ])}
      <form action={(form) => void sendMessage({ message: String(form.get('text')) })}>
        <input name="text" aria-label="Message" />
      </form>
    </main>
  );
}

// #endregion

export { Page };
