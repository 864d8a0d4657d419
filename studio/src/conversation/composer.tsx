import {
  type ClipboardEvent,
  type DragEvent,
  type KeyboardEvent,
  type ReactNode,
  useRef,
  useState,
} from 'react';
import type { Part } from '../../../src/client/index.ts';
import { textOf } from '../../../src/protocol/messages.ts';
import { useAgentValue } from '../../../src/react/index.ts';
import { type Attachment, readAttachments } from '../lib/attachments.ts';
import { useDraft } from '../lib/drafts.ts';
import { bytes } from '../lib/format.ts';
import { keyNames } from '../lib/keys.ts';
import { useWorkbench } from '../shell/workbench.tsx';
import { Icon } from '../ui/icon.tsx';
import { useAutoGrow } from '../ui/use-auto-grow.ts';

/** Where one writes: a text, files, and whether to wait for the answer. */
export function Composer({ isOffline }: { readonly isOffline: boolean }): ReactNode {
  const { store, info, commands, place, session } = useWorkbench();
  const phase = useAgentValue(store, (view) => view.phase);
  const hasInterrupts = useAgentValue(store, (view) => view.interrupts.length > 0);
  const [text, setText] = useDraft(info.name);
  const [files, setFiles] = useState<readonly Attachment[]>([]);
  const [fault, setFault] = useState<string>();
  const picker = useRef<HTMLInputElement>(null);
  const field = useAutoGrow(text);
  const form = useRef<HTMLFormElement>(null);
  const isRunning = phase === 'sending' || phase === 'running' || phase === 'stopping';
  const isEmpty = text.trim() === '' && files.length === 0;
  // Files go with a turn of their own.
  const canSteer = phase === 'running' && info.metadata.steerable === true && files.length === 0;
  const canSend = !isEmpty && !isOffline && (!isRunning || canSteer);

  const attach = async (list: Iterable<File>): Promise<void> => {
    const { added, fault: refused } = await readAttachments(list, files);
    setFiles((before) => [...before, ...added]);
    setFault(refused);
  };
  const send = (detach: boolean): void => {
    if (!canSend) return;
    const content: Part[] = [
      ...(text.trim() === '' ? [] : [{ text }]),
      ...files.map(({ url, contentType, name }) => ({
        media: { url, contentType },
        metadata: { name },
      })),
    ];
    if (isRunning) {
      void store.actions.steer(text).then((isAdded) => isAdded && setText(''));
      return;
    }
    setText('');
    setFiles([]);
    setFault(undefined);
    // The button that was pressed goes away.
    if (form.current?.contains(document.activeElement)) field.current?.focus();
    const afresh = session === 'gone';
    void commands
      .send({ message: { role: 'user', content } }, { detach, afresh })
      .then((isTaken) => {
        if (isTaken) return;
        // A refused text stays in the field, unless the user has written something else meanwhile.
        setText((now) => now || text);
        setFiles((now) => (now.length > 0 ? now : files));
      });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter' || event.nativeEvent.isComposing) return;
    const isCommand = event.metaKey || event.ctrlKey;
    if (event.shiftKey && !isCommand) return;
    event.preventDefault();
    send(event.shiftKey && info.metadata.detachable);
  };
  const onPaste = (event: ClipboardEvent): void => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    void attach(event.clipboardData.files);
  };
  const onDrop = (event: DragEvent): void => {
    event.preventDefault();
    void attach(event.dataTransfer.files);
  };

  return (
    <form
      ref={form}
      className="composer"
      aria-label="Message"
      onSubmit={(event) => {
        event.preventDefault();
        send(false);
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={onDrop}
    >
      {files.length > 0 && (
        <ul className="attachments" aria-label="Attachments">
          {files.map((file, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: the same file may be there twice
            <li key={at} className="chip">
              <Icon name="file" size={12} /> {file.name} · {bytes(file.size)}
              <button
                type="button"
                className="icon-button"
                aria-label={`Remove ${file.name}`}
                onClick={() => setFiles(files.toSpliced(at, 1))}
              >
                <Icon name="close" size={12} />
              </button>
            </li>
          ))}
        </ul>
      )}
      {fault !== undefined && (
        <p className="fault-text" role="alert">
          {fault}
        </p>
      )}
      <Steering />
      <textarea
        ref={field}
        rows={1}
        value={text}
        dir="auto"
        data-composer
        aria-label="Message"
        placeholder={placeholder({
          isOffline,
          isPast: place.snapshot !== undefined,
          hasInterrupts,
          canSteer,
          name: info.name,
        })}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
        onPaste={onPaste}
      />
      <div className="composer-bar">
        <button
          type="button"
          className="icon-button"
          onClick={() => picker.current?.click()}
          aria-label="Attach files"
          title="Attach files"
        >
          <Icon name="attach" />
        </button>
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          aria-label="Files to attach"
          onChange={(event) => {
            void attach(event.target.files ?? []);
            event.target.value = '';
          }}
        />
        <span className="composer-hint quiet">
          <span>
            <kbd>{keyNames.enter}</kbd> send
          </span>
          <span>
            <kbd>{keyNames.shiftEnter}</kbd> new line
          </span>
        </span>
        {isRunning ? (
          <RunningButtons isStopping={phase === 'stopping'} />
        ) : (
          <>
            {info.metadata.detachable && (
              <button
                type="button"
                className="button"
                disabled={!canSend}
                onClick={() => send(true)}
                title={`Runs in the background, whether or not this page is open (${keyNames.modShiftEnter})`}
              >
                <Icon name="runs" size={14} /> <span className="wide-only">Send in background</span>
                <span className="narrow-only visually-hidden">Send in background</span>
              </button>
            )}
            <button type="submit" className="button primary" disabled={!canSend}>
              <Icon name="send" size={14} /> Send
            </button>
          </>
        )}
      </div>
    </form>
  );
}

/** Messages that wait to be taken by the running turn; after its end, those that it has not taken. */
function Steering(): ReactNode {
  const { store } = useWorkbench();
  const waiting = useAgentValue(store, (view) => view.steering);
  const isRunning = useAgentValue(store, (view) => view.phase !== 'ready');
  if (waiting.length === 0) return null;
  return (
    <p className="quiet" role="status">
      {isRunning ? 'Will be added to the running turn: ' : 'Not added to the turn: '}
      {waiting.map(textOf).join(' · ')}
    </p>
  );
}

function RunningButtons({ isStopping }: { readonly isStopping: boolean }): ReactNode {
  const { store, info } = useWorkbench();
  return (
    <>
      {info.metadata.watchable && (
        <button
          type="button"
          className="button"
          onClick={() => store.actions.detach()}
          title="Stop watching; the run continues on the server"
        >
          Leave it running
        </button>
      )}
      <button
        type="button"
        className="button"
        disabled={isStopping}
        onClick={() => void store.actions.stop()}
      >
        <Icon name="stop" size={14} /> {isStopping ? 'Stopping…' : 'Stop'} <kbd>esc</kbd>
      </button>
    </>
  );
}

function placeholder(about: {
  readonly isOffline: boolean;
  readonly isPast: boolean;
  readonly hasInterrupts: boolean;
  readonly canSteer: boolean;
  readonly name: string;
}): string {
  if (about.isOffline) return 'Offline. Your draft is kept.';
  if (about.canSteer) return 'Will be added to the running turn…';
  if (about.isPast) return 'Branch from here…';
  if (about.hasInterrupts) return 'Answer above; a message declines it…';
  return `Message ${about.name}…`;
}
