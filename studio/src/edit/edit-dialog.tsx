import { type FormEvent, type ReactNode, useId, useState } from 'react';
import type { EditChange } from '../../../src/client/index.ts';
import { Dialog } from '../ui/dialog.tsx';
import { FormButtons } from '../ui/form-buttons.tsx';
import type { EditSubject } from './edit-subject.ts';

/** Edits the custom state or one file. The result is a new snapshot, so nothing is lost. */
export function EditDialog({
  subject,
  save,
  onClose,
}: {
  readonly subject: EditSubject;
  /** Resolves to what went wrong, if something did. */
  readonly save: (change: EditChange, reason: string) => Promise<string | undefined>;
  readonly onClose: () => void;
}): ReactNode {
  const id = useId();
  const [text, setText] = useState(subject.text);
  const [reason, setReason] = useState('');
  const [fault, setFault] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const change = subject.read(text);
    if (typeof change === 'string') return setFault(change);
    setBusy(true);
    const wrong = await save(change, reason.trim());
    setBusy(false);
    if (wrong === undefined) onClose();
    else setFault(wrong);
  };
  return (
    <Dialog title={subject.title} onClose={onClose} wide>
      <form onSubmit={(event) => void submit(event)}>
        <div className="field">
          <label htmlFor={`${id}-text`}>{subject.label}</label>
          <textarea
            id={`${id}-text`}
            className="edit-text"
            spellCheck={false}
            rows={16}
            value={text}
            aria-invalid={fault !== undefined}
            aria-describedby={`${id}-fault`}
            onChange={(event) => setText(event.target.value)}
          />
          <p id={`${id}-fault`} className="fault-text" role="alert">
            {fault}
          </p>
        </div>
        <div className="field">
          <label htmlFor={`${id}-reason`}>Reason (optional)</label>
          <input
            id={`${id}-reason`}
            type="text"
            dir="auto"
            maxLength={1000}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
          />
          <p className="quiet">
            Saved as a new snapshot that continues from this one. This one stays as it is.
          </p>
        </div>
        <FormButtons disabled={isBusy || text === subject.text} onCancel={onClose}>
          Save as a new snapshot
        </FormButtons>
      </form>
    </Dialog>
  );
}
