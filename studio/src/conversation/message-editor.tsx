import { type FormEvent, type ReactNode, useLayoutEffect, useState } from 'react';
import type { Message, Part } from '../../../src/client/index.ts';
import { textOf } from '../../../src/protocol/messages.ts';
import { FormButtons } from '../ui/form-buttons.tsx';
import { useAutoGrow } from '../ui/use-auto-grow.ts';

/** Edits one of the user's messages. Its attachments are kept. */
export function MessageEditor({
  message,
  isBusy,
  onSend,
  onCancel,
}: {
  readonly message: Message;
  /** Sending is disabled, typing is not. */
  readonly isBusy: boolean;
  readonly onSend: (content: Part[]) => void;
  readonly onCancel: () => void;
}): ReactNode {
  const [text, setText] = useState(textOf(message));
  const field = useAutoGrow(text);
  useLayoutEffect(() => {
    const length = field.current?.value.length ?? 0;
    field.current?.setSelectionRange(length, length);
  }, [field]);
  const attached = message.content.filter((part) => !('text' in part));
  const submit = (event?: FormEvent): void => {
    event?.preventDefault();
    if (!isBusy && (text.trim() !== '' || attached.length > 0))
      onSend([...(text.trim() === '' ? [] : [{ text }]), ...attached]);
  };
  return (
    <form className="message-editor" onSubmit={submit}>
      <textarea
        ref={field}
        value={text}
        dir="auto"
        // biome-ignore lint/a11y/noAutofocus: the user opened it to write
        autoFocus
        aria-label="Edit message"
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Escape') {
            event.stopPropagation();
            onCancel();
          }
          const sends = event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing;
          if (sends) {
            event.preventDefault();
            submit();
          }
        }}
      />
      <p className="quiet">
        Creates a branch from before this message. The current answer is kept.
      </p>
      <FormButtons disabled={isBusy} onCancel={onCancel}>
        Send as a branch
      </FormButtons>
    </form>
  );
}
