import { memo, type ReactNode, useState } from 'react';
import type { Message, Part } from '../../../src/client/index.ts';
import { textOf } from '../../../src/protocol/messages.ts';
import type { ToolSpan } from '../lib/span-tree.ts';
import { type PlacedMessage, responseTo } from '../lib/turns.ts';
import { Icon } from '../ui/icon.tsx';
import { MessageEditor } from './message-editor.tsx';
import { PartView } from './part-view.tsx';
import { ToolCall } from './tool-call.tsx';

interface MessageProps {
  readonly placed: PlacedMessage;
  readonly isLive: boolean;
  readonly agentName: string;
  readonly toolTimes: ReadonlyMap<string, ToolSpan>;
  /** Sends an edited version; absent while that is not possible. */
  readonly onResend?: ((index: number, content: Part[]) => void) | undefined;
}

/** One message: who said it, and what. */
export const MessageView = memo(function MessageView({
  placed,
  isLive,
  agentName,
  toolTimes,
  onResend,
}: MessageProps) {
  const { message, index } = placed;
  const [isEditing, setEditing] = useState(false);
  const isUser = message.role === 'user';
  // Results of tools are shown with their calls.
  if (message.role === 'tool' || message.content.length === 0) return null;
  return (
    <article
      className={`message from-${message.role}`}
      aria-label={`${speaker(message, agentName)} said`}
    >
      <div className="speaker">{speaker(message, agentName)}</div>
      <div className="said">
        {isEditing ? (
          <MessageEditor
            message={message}
            isBusy={!onResend}
            onCancel={() => setEditing(false)}
            onSend={(content) => {
              setEditing(false);
              onResend?.(index, content);
            }}
          />
        ) : (
          message.content.map((part, at) => (
            <MessagePart
              // biome-ignore lint/suspicious/noArrayIndexKey: a part is known by its place
              key={at}
              part={part}
              isPlain={isUser}
              answers={placed.answers}
              isLive={isLive}
              toolTimes={toolTimes}
            />
          ))
        )}
      </div>
      {isUser && onResend && !isEditing && (
        <button
          type="button"
          className="icon-button message-edit"
          onClick={() => setEditing(true)}
          aria-label={`Edit and resend: ${textOf(message).slice(0, 60)}`}
          title="Edit and resend on a new branch"
        >
          <Icon name="edit" size={14} />
        </button>
      )}
    </article>
  );
});

function MessagePart({
  part,
  isPlain,
  answers,
  isLive,
  toolTimes,
}: Pick<MessageProps, 'isLive' | 'toolTimes'> & {
  readonly part: Part;
  readonly answers: PlacedMessage['answers'];
  readonly isPlain: boolean;
}): ReactNode {
  if (!('toolRequest' in part)) return <PartView part={part} isPlain={isPlain} />;
  return (
    <ToolCall
      request={part}
      response={responseTo(part, answers)}
      span={toolTimes.get(part.toolRequest.ref ?? '')}
      isLive={isLive}
    />
  );
}

function speaker({ role }: Message, agentName: string): string {
  switch (role) {
    case 'user':
      return 'You';
    case 'system':
      return 'System';
    case 'model':
    case 'tool':
      return agentName;
  }
}
